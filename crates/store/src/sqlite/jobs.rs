//! Jobs of schedules and their runs: the port over `schedules`.

use hermes_core::{
    BoxFuture, ClaimOutcome, DeliveryStatus, Job, JobId, Run, RunClaim, RunEnd, RunFilter, RunId,
    RunLease, RunStep, Schedules, StoreError, Timestamp,
};

use super::SqliteStore;
use crate::schedules;

impl Schedules for SqliteStore {
    fn add_job(&self, job: Job) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer.run(move |conn| schedules::add(conn, &job)).await
        })
    }

    fn import_jobs(&self, jobs: Vec<Job>) -> BoxFuture<'_, Result<Vec<JobId>, StoreError>> {
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer.run(move |conn| schedules::import(conn, &jobs)).await
        })
    }

    fn change_job(&self, job: Job) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer.run(move |conn| schedules::change(conn, &job)).await
        })
    }

    fn remove_job(&self, job: &JobId) -> BoxFuture<'_, Result<bool, StoreError>> {
        let job = job.clone();
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer.run(move |conn| schedules::remove(conn, &job)).await
        })
    }

    fn job(&self, job: &JobId) -> BoxFuture<'_, Result<Option<Job>, StoreError>> {
        let job = job.clone();
        Box::pin(
            self.readers
                .run(move |conn| schedules::read_job(conn, &job)),
        )
    }

    fn jobs(&self) -> BoxFuture<'_, Result<Vec<Job>, StoreError>> {
        Box::pin(self.readers.run(schedules::jobs))
    }

    fn due_jobs(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<Job>, StoreError>> {
        Box::pin(self.readers.run(move |conn| schedules::due(conn, now)))
    }

    fn next_due(&self) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>> {
        Box::pin(self.readers.run(schedules::next_due))
    }

    fn claim_run(&self, claim: RunClaim) -> BoxFuture<'_, Result<ClaimOutcome, StoreError>> {
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer.run(move |conn| schedules::claim(conn, &claim)).await
        })
    }

    fn abandoned_runs(
        &self,
        now: Timestamp,
        lease_until_max: Timestamp,
    ) -> BoxFuture<'_, Result<Vec<Run>, StoreError>> {
        Box::pin(
            self.readers
                .run(move |conn| schedules::abandoned(conn, now, lease_until_max)),
        )
    }

    fn take_run(
        &self,
        seen: RunLease,
        holder: &str,
        until: Timestamp,
    ) -> BoxFuture<'_, Result<Option<Run>, StoreError>> {
        let holder = holder.to_owned();
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer
                .run(move |conn| schedules::take(conn, seen, &holder, until))
                .await
        })
    }

    fn renew_run(
        &self,
        lease: RunLease,
        until: Timestamp,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer
                .run(move |conn| schedules::renew(conn, lease, until))
                .await
        })
    }

    fn note_run(&self, lease: RunLease, step: RunStep) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer
                .run(move |conn| schedules::note(conn, lease, &step))
                .await
        })
    }

    fn put_off_run(
        &self,
        lease: RunLease,
        until: Timestamp,
        error: &str,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let error = error.to_owned();
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer
                .run(move |conn| schedules::put_off(conn, lease, until, &error))
                .await
        })
    }

    fn finish_run(&self, lease: RunLease, end: RunEnd) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer
                .run(move |conn| schedules::finish(conn, lease, &end))
                .await
        })
    }

    fn undelivered(&self) -> BoxFuture<'_, Result<Vec<Run>, StoreError>> {
        Box::pin(self.readers.run(schedules::undelivered))
    }

    fn set_delivery(
        &self,
        run: RunId,
        target: &str,
        status: DeliveryStatus,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let target = target.to_owned();
        Box::pin(async move {
            let writer = &self.write_side()?.writer;
            writer
                .run(move |conn| schedules::set_delivery(conn, run, &target, &status))
                .await
        })
    }

    fn runs(&self, filter: RunFilter) -> BoxFuture<'_, Result<Vec<Run>, StoreError>> {
        Box::pin(self.readers.run(move |conn| schedules::runs(conn, &filter)))
    }
}
