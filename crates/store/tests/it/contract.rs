use hermes_testkit::contract::store::store_contract;

#[tokio::test]
async fn sqlite_keeps_the_promises_of_a_store() {
    store_contract(async |folder| super::open(&folder)).await;
}
