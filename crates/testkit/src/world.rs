//! A whole small world for in-process tests: scripted model, store in memory, time that stands still, seeded ids.

use std::sync::Arc;

use hermes_core::{Checkpoints, Model, Random, Tool};
use tempfile::TempDir;

use crate::clock::TestClock;
use crate::memory_store::MemoryStore;
use crate::scripted::{ScriptedModel, Step};

pub struct World {
    pub model: Arc<ScriptedModel>,
    /// Answers in place of the script, if set.
    pub answering: Option<Arc<dyn Model>>,
    pub store: MemoryStore,
    pub clock: Arc<TestClock>,
    pub random: Arc<Random>,
    pub tools: Vec<Arc<dyn Tool>>,
    pub checkpoints: Option<Arc<dyn Checkpoints>>,
    /// Who answers subagents, if not the model.
    pub subagent_model: Option<Arc<ScriptedModel>>,
    /// Who summarises, if not the model.
    pub compression_model: Option<Arc<dyn Model>>,
    /// The working directory; gone with the world.
    pub folder: TempDir,
}

impl World {
    /// A world whose model says these things, in order.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            model: Arc::new(ScriptedModel::new(steps)),
            answering: None,
            store: MemoryStore::default(),
            clock: Arc::default(),
            random: Arc::new(Random::seeded(1)),
            tools: Vec::new(),
            checkpoints: None,
            subagent_model: None,
            compression_model: None,
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Subagents get a model of their own, which says these things.
    pub fn subagents(mut self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.subagent_model = Some(Arc::new(ScriptedModel::new(steps)));
        self
    }

    /// The same store after a restart: another model script, another process.
    pub fn restarted(self, steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            model: Arc::new(ScriptedModel::new(steps)),
            random: Arc::new(Random::seeded(2)),
            ..self
        }
    }
}
