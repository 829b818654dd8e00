//! The scripts for Termux, whose services runit looks after.

use super::Unit;

pub(super) fn run(unit: &Unit) -> String {
    let variables = unit.variables().into_iter();
    let variables = variables.map(|(name, value)| format!("export {name}={}\n", quoted(&value)));
    let program = std::iter::once(unit.program.display().to_string());
    let words = program.chain(unit.arguments("termux"));
    let command: Vec<String> = words.map(|word| quoted(&word)).collect();
    format!(
        "#!/data/data/com.termux/files/usr/bin/sh\n{}cd {}\nexec {} >> {} 2>&1\n",
        variables.collect::<String>(),
        quoted(&unit.user_home.display().to_string()),
        command.join(" "),
        quoted(&unit.log.display().to_string()),
    )
}

/// Settings that cannot work are not tried again.
pub(super) fn finish() -> String {
    "#!/data/data/com.termux/files/usr/bin/sh\n[ \"$1\" = 78 ] && sv down \"$PWD\"\nexit 0\n"
        .to_owned()
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
