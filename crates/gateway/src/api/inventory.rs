//! What the agent has, in lists that the binary puts together.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::Api;
use super::error::{ApiError, ApiResult};

/// What there is to list.
pub trait Inventory: Send + Sync {
    fn skills(&self) -> Result<Vec<ListedSkill>, String>;
    fn toolsets(&self) -> Result<Vec<ListedToolset>, String>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSkill {
    pub name: String,
    pub category: String,
    pub description: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedToolset {
    pub name: String,
    pub purpose: String,
    pub is_on: bool,
    pub tools: Vec<String>,
}

pub(super) async fn skills(State(api): State<Arc<Api>>) -> ApiResult<Json<Value>> {
    let skills = api.parts.inventory.skills().map_err(ApiError::internal)?;
    let listed = skills.into_iter().map(|skill| {
        json!({"name": skill.name, "category": skill.category, "description": skill.description})
    });
    let data: Vec<Value> = listed.collect();
    Ok(Json(json!({"object": "list", "data": data})))
}

pub(super) async fn toolsets(State(api): State<Arc<Api>>) -> ApiResult<Json<Value>> {
    let toolsets = api.parts.inventory.toolsets().map_err(ApiError::internal)?;
    let listed = toolsets.into_iter().map(|one| {
        json!({"name": one.name, "description": one.purpose, "enabled": one.is_on, "tools": one.tools})
    });
    let data: Vec<Value> = listed.collect();
    Ok(Json(json!({"object": "list", "data": data})))
}
