//! What programs are known to need.

use hermes_core::FenceSetting;

use super::{Needs, Program, git};

/// Where the keys of `ssh` are.
const SSH: &str = ".ssh";

const CONTAINERS: &str = "talks to the container engine, which works outside the fence";
const LATER: &str = "has something run that the fence does not hold";
const RIGHTS: &str = "takes other rights, which nothing inside the fence gets";
const INSTALLS: &str = "installs programs outside the project";

/// Programs that leave the fence by their nature, and why.
const OUTSIDE: &[(&[&str], &str)] = &[
    (
        &[
            "docker",
            "podman",
            "nerdctl",
            "docker-compose",
            "podman-compose",
            "buildah",
            "lima",
            "colima",
            "minikube",
            "kind",
        ],
        CONTAINERS,
    ),
    (
        &[
            "at",
            "batch",
            "systemd-run",
            "tmux",
            "screen",
            "zellij",
            "launchctl",
            "dbus-send",
            "dbus-launch",
            "gdbus",
            "busctl",
            "flatpak-spawn",
            "machinectl",
            "xdg-open",
            "snap",
            "flatpak",
        ],
        LATER,
    ),
    (&["sudo", "su", "doas", "pkexec", "runuser"], RIGHTS),
    (
        &[
            "apt", "apt-get", "dnf", "yum", "pacman", "zypper", "apk", "brew", "dpkg", "rustup",
            "pipx", "nix-env", "sdk",
        ],
        INSTALLS,
    ),
];

/// Programs that use something hidden below the home.
const USE: &[(&[&str], &str)] = &[
    (&["aws", "sam", "cdk"], ".aws"),
    (&["az"], ".azure"),
    (&["gcloud", "gsutil", "bq"], ".config/gcloud"),
    (
        &[
            "kubectl",
            "helm",
            "k9s",
            "kubectx",
            "kubens",
            "kustomize",
            "stern",
        ],
        ".kube",
    ),
    (&["gpg", "gpg2", "gpg-agent", "gpgconf"], ".gnupg"),
    (&["pass"], ".password-store"),
    (&["rclone"], ".config/rclone"),
    (&["doctl"], ".config/doctl"),
];

/// Programs that read something hidden below the home, where it is there.
const READ: &[(&[&str], &[&str])] = &[
    (&["gh"], &[".config/gh", ".ssh"]),
    (&["glab"], &[".config/glab-cli", ".ssh"]),
    (&["hub"], &[".config/hub", ".ssh"]),
    (
        &["terraform", "tofu"],
        &[".terraform.d/credentials.tfrc.json", ".terraformrc", ".aws"],
    ),
    (&["psql", "pg_dump", "pg_restore"], &[".pgpass"]),
    (&["mysql", "mysqldump", "mariadb"], &[".my.cnf"]),
    (&["twine"], &[".pypirc"]),
    (&["vault"], &[".vault-token"]),
    (&["npm", "pnpm", "npx"], &[".npmrc"]),
    (&["yarn"], &[".npmrc", ".yarnrc.yml"]),
    (&["gem", "bundle"], &[".gem/credentials"]),
    (
        &["composer"],
        &[".composer/auth.json", ".config/composer/auth.json"],
    ),
    (
        &["huggingface-cli", "hf"],
        &[".huggingface/token", ".cache/huggingface/token"],
    ),
];

/// Adds what a program needs.
pub(super) fn add(needs: &mut Needs, program: &Program, setting: FenceSetting<'_>) {
    let name = program.name.as_str();
    let is_listed = |names: &[&str]| names.contains(&name);
    let (subcommand, _) = program.subcommand();
    for (_, reason) in OUTSIDE.iter().filter(|(names, _)| is_listed(names)) {
        needs.outside(reason);
    }
    for (_, path) in USE.iter().filter(|(names, _)| is_listed(names)) {
        needs.uses_at_home(path, setting);
    }
    for (_, paths) in READ.iter().filter(|(names, _)| is_listed(names)) {
        paths
            .iter()
            .for_each(|path| needs.reads_at_home(path, setting));
    }
    match name {
        "git" => git::add(needs, program, setting),
        "ssh" | "scp" | "sftp" | "mosh" | "ssh-add" | "ssh-copy-id" | "sshfs" => {
            uses_ssh(needs, setting);
        }
        "ssh-keygen" => needs.uses_at_home(SSH, setting),
        "rsync" if program.operands().any(is_host) => uses_ssh(needs, setting),
        "ansible" | "ansible-playbook" => uses_ssh(needs, setting),
        "crontab" if !program.has(&["-l"]) => needs.outside(LATER),
        "systemctl" if program.has(&["--user"]) => needs.outside(LATER),
        "cargo"
            if matches!(
                subcommand,
                "publish" | "login" | "logout" | "owner" | "yank"
            ) =>
        {
            needs.reads_at_home(".cargo/credentials.toml", setting);
            if matches!(subcommand, "login" | "logout") {
                needs.outside("changes `~/.cargo/credentials.toml`");
            }
        }
        "cargo" if matches!(subcommand, "install" | "uninstall") && !program.has(&["--root"]) => {
            needs.outside(INSTALLS);
        }
        "npm" | "pnpm" | "yarn" | "bun" if program.has(&["-g", "--global", "global"]) => {
            needs.outside(INSTALLS);
        }
        "npm" | "pnpm" | "yarn"
            if matches!(subcommand, "login" | "logout" | "adduser" | "token") =>
        {
            needs.outside("changes `~/.npmrc`");
        }
        "go" if subcommand == "install" => needs.outside(INSTALLS),
        "pip" | "pip3" if program.has(&["--user"]) => needs.outside(INSTALLS),
        "uv" if subcommand == "tool" => needs.outside(INSTALLS),
        "pre-commit" | "husky" | "lefthook"
            if matches!(subcommand, "install" | "uninstall" | "init") =>
        {
            let git = setting.area.project.join(".git");
            needs.because("changes what git runs (`.git/hooks`)".to_owned());
            needs
                .pass
                .writes
                .extend([git.join("hooks"), git.join("config")]);
        }
        _ => {}
    }
}

/// The keys of `ssh`, which an agent may hold as well.
pub(super) fn uses_ssh(needs: &mut Needs, setting: FenceSetting<'_>) {
    if let Some(path) = super::at_home(SSH, setting) {
        needs.because(format!("reads `~/{SSH}`"));
        needs.pass.reads.push(path);
    }
}

/// `host:path`, and not a path with a colon in it.
fn is_host(operand: &str) -> bool {
    let before = operand.split('/').next().unwrap_or_default();
    before.contains(':')
}
