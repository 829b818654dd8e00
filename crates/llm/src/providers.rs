//! Every model provider we ship, as one table. A provider is a row here and nothing anywhere else.

use std::time::Duration;

use crate::login::{DeviceLogin, RefreshTokenIn};

/// How a provider is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// `POST …/chat/completions`, the wire most servers speak, local ones included.
    OpenAiChat,
    /// `POST …/responses`.
    OpenAiResponses,
    /// `POST …/v1/messages`.
    Anthropic,
    /// `POST …/models/NAME:streamGenerateContent`.
    Gemini,
}

/// A place that serves models.
#[derive(Debug, Clone, Copy)]
pub struct Provider {
    pub id: &'static str,
    pub label: &'static str,
    pub aliases: &'static [&'static str],
    /// Empty when only the user knows it.
    pub base_url: &'static str,
    /// The variable that replaces `base_url`.
    pub base_url_env: Option<&'static str>,
    /// The variables a key may be in; every one that is set joins the provider's pool, in this order.
    pub key_envs: &'static [&'static str],
    pub protocol: Protocol,
    /// A model to suggest in setup, and to use when the user named only the provider.
    pub default_model: &'static str,
    /// Runs on the user's machine: no key, no price, and patience while it loads.
    pub local: bool,
    /// Where to get a key.
    pub key_page: &'static str,
    /// How a person logs in instead of having a key.
    pub login: Option<&'static DeviceLogin>,
    /// What its keys begin with, where no other provider's do. Empty when that is not known.
    pub key_prefix: &'static str,
    pub quirks: Quirks,
}

/// What a provider does differently from others of its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quirks {
    /// Wants `reasoning_content` back on messages that call tools, and refuses the request without it.
    pub replays_reasoning: bool,
    /// Takes `prompt_cache_key`; others refuse fields they do not know.
    pub cache_key: bool,
    /// Takes a reasoning effort; others refuse it or fail on names they do not know.
    pub effort: bool,
    /// Caches Claude's prompts when the request says `cache_control`, and passes them on uncached otherwise.
    pub marks_claude: bool,
}

const PLAIN: Quirks = Quirks {
    replays_reasoning: false,
    cache_key: false,
    effort: false,
    marks_claude: false,
};
const EFFORT: Quirks = Quirks {
    effort: true,
    ..PLAIN
};
const OPENAI: Quirks = Quirks {
    cache_key: true,
    ..EFFORT
};
const OPENROUTER: Quirks = Quirks {
    marks_claude: true,
    ..EFFORT
};
const REPLAYS_REASONING: Quirks = Quirks {
    replays_reasoning: true,
    ..PLAIN
};

/// What most rows have in common.
const HOSTED: Provider = Provider {
    id: "",
    label: "",
    aliases: &[],
    base_url: "",
    base_url_env: None,
    key_envs: &[],
    protocol: Protocol::OpenAiChat,
    default_model: "",
    local: false,
    key_page: "",
    login: None,
    key_prefix: "",
    quirks: PLAIN,
};

const LOCAL: Provider = Provider {
    local: true,
    ..HOSTED
};

const NOUS_PORTAL: DeviceLogin = DeviceLogin {
    base_url: "https://portal.nousresearch.com",
    base_url_envs: &["HERMES_PORTAL_BASE_URL", "NOUS_PORTAL_BASE_URL"],
    device_path: "/api/oauth/device/code",
    token_path: "/api/oauth/token",
    revoke_path: None,
    client_id: "hermes-cli",
    scope: "inference:invoke",
    needed_scope: "inference:invoke",
    refresh_token_in: RefreshTokenIn::Header("x-nous-refresh-token"),
    renew_before: Duration::from_secs(120),
    page: "https://portal.nousresearch.com",
};

/// The client that xAI made for programs in terminals; it takes no other one.
const XAI_ACCOUNTS: DeviceLogin = DeviceLogin {
    base_url: "https://auth.x.ai",
    base_url_envs: &[],
    device_path: "/oauth2/device/code",
    token_path: "/oauth2/token",
    revoke_path: Some("/oauth2/revoke"),
    client_id: "b1a00492-073a-47ea-816f-4c329264a828",
    scope: "openid profile email offline_access grok-cli:access api:access",
    needed_scope: "api:access",
    refresh_token_in: RefreshTokenIn::Form,
    renew_before: Duration::from_secs(120),
    page: "https://accounts.x.ai",
};

/// All providers, in the order in which a key in the environment selects one and `hermes model` shows them.
pub const PROVIDERS: &[Provider] = &[
    Provider {
        id: "openrouter",
        label: "OpenRouter",
        base_url: "https://openrouter.ai/api/v1",
        base_url_env: Some("OPENROUTER_BASE_URL"),
        key_envs: &["OPENROUTER_API_KEY"],
        default_model: "anthropic/claude-sonnet-4.6",
        key_page: "https://openrouter.ai/keys",
        key_prefix: "sk-or-",
        quirks: OPENROUTER,
        ..HOSTED
    },
    Provider {
        id: "nous",
        label: "Nous Portal",
        aliases: &["nous-portal", "nousresearch"],
        base_url: "https://inference-api.nousresearch.com/v1",
        base_url_env: Some("NOUS_BASE_URL"),
        key_envs: &["NOUS_API_KEY"],
        default_model: "Hermes-4-405B",
        key_page: "https://portal.nousresearch.com",
        login: Some(&NOUS_PORTAL),
        quirks: EFFORT,
        ..HOSTED
    },
    Provider {
        id: "anthropic",
        label: "Anthropic",
        aliases: &["claude"],
        base_url: "https://api.anthropic.com",
        base_url_env: Some("ANTHROPIC_BASE_URL"),
        key_envs: &[
            "ANTHROPIC_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "ANTHROPIC_API_KEY",
        ],
        protocol: Protocol::Anthropic,
        default_model: "claude-sonnet-4-6",
        key_page: "https://console.anthropic.com/settings/keys",
        key_prefix: "sk-ant-",
        quirks: EFFORT,
        ..HOSTED
    },
    Provider {
        id: "openai-api",
        label: "OpenAI",
        aliases: &["openai"],
        base_url: "https://api.openai.com/v1",
        base_url_env: Some("OPENAI_BASE_URL"),
        key_envs: &["OPENAI_API_KEY"],
        protocol: Protocol::OpenAiResponses,
        default_model: "gpt-5.1",
        key_page: "https://platform.openai.com/api-keys",
        key_prefix: "sk-proj-",
        quirks: OPENAI,
        ..HOSTED
    },
    Provider {
        id: "openai-chat",
        label: "OpenAI (chat completions)",
        base_url: "https://api.openai.com/v1",
        base_url_env: Some("OPENAI_BASE_URL"),
        key_envs: &["OPENAI_API_KEY"],
        default_model: "gpt-5.1",
        key_page: "https://platform.openai.com/api-keys",
        quirks: OPENAI,
        ..HOSTED
    },
    Provider {
        id: "gemini",
        label: "Google Gemini",
        aliases: &["google", "google-gemini"],
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        base_url_env: Some("GEMINI_BASE_URL"),
        key_envs: &["GOOGLE_API_KEY", "GEMINI_API_KEY"],
        protocol: Protocol::Gemini,
        default_model: "gemini-3-pro-preview",
        key_page: "https://aistudio.google.com/apikey",
        key_prefix: "AIza",
        quirks: EFFORT,
        ..HOSTED
    },
    Provider {
        id: "xai",
        label: "xAI",
        aliases: &["grok", "x-ai"],
        base_url: "https://api.x.ai/v1",
        base_url_env: Some("XAI_BASE_URL"),
        key_envs: &["XAI_API_KEY"],
        protocol: Protocol::OpenAiResponses,
        default_model: "grok-4-1-fast",
        key_page: "https://console.x.ai",
        key_prefix: "xai-",
        ..HOSTED
    },
    // Not the row above with a login: who chose this one does not want a key in the environment to be charged.
    Provider {
        id: "xai-oauth",
        label: "xAI (Grok subscription)",
        aliases: &["grok-oauth"],
        base_url: "https://api.x.ai/v1",
        protocol: Protocol::OpenAiResponses,
        default_model: "grok-4-1-fast",
        login: Some(&XAI_ACCOUNTS),
        ..HOSTED
    },
    Provider {
        id: "deepseek",
        label: "DeepSeek",
        base_url: "https://api.deepseek.com/v1",
        base_url_env: Some("DEEPSEEK_BASE_URL"),
        key_envs: &["DEEPSEEK_API_KEY"],
        default_model: "deepseek-chat",
        key_page: "https://platform.deepseek.com/api_keys",
        quirks: REPLAYS_REASONING,
        ..HOSTED
    },
    Provider {
        id: "zai",
        label: "Z.ai (GLM)",
        aliases: &["glm", "zhipu", "z-ai"],
        base_url: "https://api.z.ai/api/paas/v4",
        base_url_env: Some("GLM_BASE_URL"),
        key_envs: &["GLM_API_KEY", "ZAI_API_KEY", "Z_AI_API_KEY"],
        default_model: "glm-4.7",
        key_page: "https://z.ai/manage-apikey/apikey-list",
        ..HOSTED
    },
    Provider {
        id: "kimi-coding",
        label: "Kimi (Moonshot)",
        aliases: &["kimi", "moonshot"],
        base_url: "https://api.moonshot.ai/v1",
        base_url_env: Some("KIMI_BASE_URL"),
        key_envs: &["KIMI_API_KEY", "KIMI_CODING_API_KEY"],
        default_model: "kimi-k2.5",
        key_page: "https://platform.moonshot.ai/console/api-keys",
        quirks: REPLAYS_REASONING,
        ..HOSTED
    },
    Provider {
        id: "kimi-coding-cn",
        label: "Kimi (Moonshot, China)",
        aliases: &["kimi-cn", "moonshot-cn"],
        base_url: "https://api.moonshot.cn/v1",
        key_envs: &["KIMI_CN_API_KEY"],
        default_model: "kimi-k2.5",
        key_page: "https://platform.moonshot.cn/console/api-keys",
        quirks: REPLAYS_REASONING,
        ..HOSTED
    },
    Provider {
        id: "minimax",
        label: "MiniMax",
        base_url: "https://api.minimax.io/anthropic",
        base_url_env: Some("MINIMAX_BASE_URL"),
        key_envs: &["MINIMAX_API_KEY"],
        protocol: Protocol::Anthropic,
        default_model: "MiniMax-M2.1",
        key_page: "https://platform.minimax.io/user-center/basic-information/interface-key",
        ..HOSTED
    },
    Provider {
        id: "minimax-cn",
        label: "MiniMax (China)",
        base_url: "https://api.minimaxi.com/anthropic",
        key_envs: &["MINIMAX_CN_API_KEY"],
        protocol: Protocol::Anthropic,
        default_model: "MiniMax-M2.1",
        key_page: "https://platform.minimaxi.com/user-center/basic-information/interface-key",
        ..HOSTED
    },
    Provider {
        id: "xiaomi",
        label: "Xiaomi MiMo",
        aliases: &["mimo"],
        base_url: "https://api.xiaomimimo.com/v1",
        base_url_env: Some("XIAOMI_BASE_URL"),
        key_envs: &["XIAOMI_API_KEY", "MIMO_API_KEY"],
        default_model: "mimo-v2-flash",
        key_page: "https://platform.xiaomimimo.com",
        quirks: REPLAYS_REASONING,
        ..HOSTED
    },
    Provider {
        id: "alibaba",
        label: "Alibaba Model Studio (Qwen)",
        aliases: &["qwen", "dashscope"],
        base_url: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        base_url_env: Some("DASHSCOPE_BASE_URL"),
        key_envs: &["DASHSCOPE_API_KEY"],
        default_model: "qwen3-max",
        key_page: "https://modelstudio.console.alibabacloud.com",
        ..HOSTED
    },
    Provider {
        id: "nvidia",
        label: "NVIDIA NIM",
        aliases: &["nim"],
        base_url: "https://integrate.api.nvidia.com/v1",
        base_url_env: Some("NVIDIA_BASE_URL"),
        key_envs: &["NVIDIA_API_KEY"],
        default_model: "nvidia/nemotron-3-nano-30b-a3b",
        key_page: "https://build.nvidia.com",
        key_prefix: "nvapi-",
        ..HOSTED
    },
    Provider {
        id: "huggingface",
        label: "Hugging Face",
        aliases: &["hf"],
        base_url: "https://router.huggingface.co/v1",
        base_url_env: Some("HF_BASE_URL"),
        key_envs: &["HF_TOKEN"],
        default_model: "openai/gpt-oss-120b",
        key_page: "https://huggingface.co/settings/tokens",
        key_prefix: "hf_",
        ..HOSTED
    },
    Provider {
        id: "groq",
        label: "Groq",
        base_url: "https://api.groq.com/openai/v1",
        key_envs: &["GROQ_API_KEY"],
        default_model: "openai/gpt-oss-120b",
        key_page: "https://console.groq.com/keys",
        key_prefix: "gsk_",
        ..HOSTED
    },
    Provider {
        id: "mistral",
        label: "Mistral",
        base_url: "https://api.mistral.ai/v1",
        key_envs: &["MISTRAL_API_KEY"],
        default_model: "mistral-large-latest",
        key_page: "https://console.mistral.ai/api-keys",
        ..HOSTED
    },
    Provider {
        id: "together",
        label: "Together AI",
        aliases: &["together-ai"],
        base_url: "https://api.together.xyz/v1",
        key_envs: &["TOGETHER_API_KEY"],
        default_model: "openai/gpt-oss-120b",
        key_page: "https://api.together.ai/settings/api-keys",
        ..HOSTED
    },
    Provider {
        id: "fireworks",
        label: "Fireworks AI",
        aliases: &["fireworks-ai"],
        base_url: "https://api.fireworks.ai/inference/v1",
        key_envs: &["FIREWORKS_API_KEY"],
        default_model: "accounts/fireworks/models/gpt-oss-120b",
        key_page: "https://app.fireworks.ai/settings/users/api-keys",
        ..HOSTED
    },
    Provider {
        id: "ollama",
        label: "Ollama",
        base_url: "http://127.0.0.1:11434/v1",
        base_url_env: Some("OLLAMA_BASE_URL"),
        ..LOCAL
    },
    Provider {
        id: "lmstudio",
        label: "LM Studio",
        aliases: &["lm-studio"],
        base_url: "http://127.0.0.1:1234/v1",
        base_url_env: Some("LM_BASE_URL"),
        key_envs: &["LM_API_KEY"],
        ..LOCAL
    },
    Provider {
        id: "llamacpp",
        label: "llama.cpp",
        aliases: &["llama.cpp", "llama-cpp"],
        base_url: "http://127.0.0.1:8080/v1",
        ..LOCAL
    },
    Provider {
        id: "vllm",
        label: "vLLM",
        base_url: "http://127.0.0.1:8000/v1",
        ..LOCAL
    },
    Provider {
        id: CUSTOM,
        label: "another OpenAI-compatible endpoint",
        aliases: &["local"],
        ..LOCAL
    },
];

/// The provider whose base URL only the user knows.
pub const CUSTOM: &str = "custom";

/// Recognises whose key this is by how it begins.
pub fn find_by_key(key: &str) -> Option<&'static Provider> {
    let is_its = |provider: &&Provider| {
        !provider.key_prefix.is_empty() && key.starts_with(provider.key_prefix)
    };
    PROVIDERS.iter().find(is_its)
}

/// Finds a provider by id or alias, in any case.
pub fn find(name: &str) -> Option<&'static Provider> {
    let name = name.trim();
    PROVIDERS.iter().find(|provider| {
        std::iter::once(&provider.id)
            .chain(provider.aliases)
            .any(|known| known.eq_ignore_ascii_case(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_name_means_one_provider() {
        let mut names = HashSet::new();
        for provider in PROVIDERS {
            for name in std::iter::once(&provider.id).chain(provider.aliases) {
                assert!(names.insert(*name), "`{name}` is in the table twice");
                assert_eq!(find(name).map(|found| found.id), Some(provider.id));
            }
        }
    }

    #[test]
    fn aliases_lead_where_users_expect() {
        let check = |alias, id| assert_eq!(find(alias).map(|found| found.id), Some(id));
        check("openai", "openai-api");
        check("GLM", "zai");
        check("grok", "xai");
        check("claude", "anthropic");
        check("google", "gemini");
        check("hf", "huggingface");
        assert!(find("nobody").is_none());
    }

    #[test]
    fn hosted_providers_say_how_to_get_in_and_which_model_to_try() {
        for provider in PROVIDERS.iter().filter(|provider| !provider.local) {
            assert!(provider.base_url.starts_with("https://"), "{}", provider.id);
            let has_key =
                !provider.key_envs.is_empty() && provider.key_page.starts_with("https://");
            assert!(has_key || provider.login.is_some(), "{}", provider.id);
            assert!(!provider.default_model.is_empty(), "{}", provider.id);
        }
    }
}
