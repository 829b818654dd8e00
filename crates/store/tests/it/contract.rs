use hermes_testkit::contract::store::{
    gateway_contract, learning_contract, records_contract, schedules_contract, store_contract,
    user_models_contract,
};

#[tokio::test]
async fn sqlite_keeps_the_promises_of_a_store() {
    store_contract(async |folder| super::open(&folder)).await;
}

#[tokio::test]
async fn sqlite_keeps_what_was_learned() {
    learning_contract(async |folder| super::open(&folder)).await;
}

#[tokio::test]
async fn sqlite_keeps_what_is_known_of_people() {
    user_models_contract(async |folder| super::open(&folder)).await;
}

#[tokio::test]
async fn sqlite_keeps_jobs_and_their_runs() {
    schedules_contract(async |folder| super::open(&folder)).await;
}

#[tokio::test]
async fn sqlite_keeps_what_a_gateway_needs() {
    gateway_contract(async |folder| super::open(&folder)).await;
}

#[tokio::test]
async fn sqlite_keeps_records_until_their_end() {
    records_contract(async |folder| super::open(&folder)).await;
}
