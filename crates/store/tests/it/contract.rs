use hermes_testkit::contract::store::{learning_contract, store_contract};

#[tokio::test]
async fn sqlite_keeps_the_promises_of_a_store() {
    store_contract(async |folder| super::open(&folder)).await;
}

#[tokio::test]
async fn sqlite_keeps_what_was_learned() {
    learning_contract(async |folder| super::open(&folder)).await;
}
