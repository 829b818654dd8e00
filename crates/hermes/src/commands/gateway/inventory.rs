//! What the API lists: the skills and toolsets of this home.

use std::sync::Arc;

use hermes_core::SessionOptions;
use hermes_gateway::api::{Inventory, ListedSkill, ListedToolset};
use hermes_runtime::skills;
use hermes_runtime::tools::switch::leaves;
use hermes_runtime::tools::toolsets::Toolsets;

use super::settings::api::SOURCE;
use crate::base::Base;

pub(super) struct HomeInventory(pub(super) Arc<Base>);

impl HomeInventory {
    /// The settings as they are now.
    fn base(&self) -> Result<Base, String> {
        let base = self.0.with_options(&SessionOptions {
            surface: Some(SOURCE.to_owned()),
            ..SessionOptions::default()
        });
        base.map_err(|error| error.to_string())
    }
}

impl Inventory for HomeInventory {
    fn skills(&self) -> Result<Vec<ListedSkill>, String> {
        let index = skills::index(&self.base()?).map_err(|error| error.to_string())?;
        let listed = index.lines.into_iter().map(|line| ListedSkill {
            name: line.name,
            category: line.category,
            description: line.description,
        });
        Ok(listed.collect())
    }

    fn toolsets(&self) -> Result<Vec<ListedToolset>, String> {
        let base = self.base()?;
        let chosen = Toolsets::of_settings(&base, SOURCE).map_err(|error| error.to_string())?;
        let listed = leaves().map(|one| ListedToolset {
            name: one.name.to_owned(),
            purpose: one.purpose.to_owned(),
            is_on: chosen.has(one),
            tools: skills::members(one.name),
        });
        Ok(listed.collect())
    }
}
