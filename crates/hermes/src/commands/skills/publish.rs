//! `hermes skills publish`: shown, scanned and agreed to before anybody else can see it.

use hermes_learning::skills::Package;
use hermes_learning::skills::hub::Force;
use hermes_runtime::layout::printable;
use hermes_runtime::publishing::{self, Published, Target};

use super::hub::findings;
use super::{read_only, told};
use crate::args::PublishArgs;
use crate::base::Base;
use crate::commands::confirm::{Enter, confirm, is_anybody_there};
use crate::commands::layout::{Table, one_line};
use crate::failure::{Failure, Outcome};
use crate::output::println;

pub(super) async fn publish(base: &Base, args: PublishArgs) -> Outcome<()> {
    let secrets = publishing::secrets(base);
    let package = read_only(base)?
        .package(&args.name, &secrets)
        .await
        .map_err(told)?;
    let target = Target::of(&args.to, &base.cwd);
    println(&shown(&package, &target))?;
    let force = if args.force { Force::Yes } else { Force::No };
    if let Some(why) = package.refusal(force) {
        return Err(Failure::new(format!(
            "`{}` is not published: {why}",
            package.name
        )));
    }
    if !args.yes && !is_anybody_there() {
        return Err(Failure::usage("nobody is there to agree to it").hint("--yes agrees"));
    }
    if !args.yes && !confirm("Publish it?", Enter::MeansNo)? {
        return println("nothing was published");
    }
    let published = publishing::publish(base, &package, &target).await?;
    println(&done(&package, &target, &published))
}

/// What a person sees before they agree.
fn shown(package: &Package, target: &Target) -> String {
    let mut table = Table::without_heading();
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("skill", one_line(&package.name));
    row("for", one_line(&package.description));
    let paths: Vec<&str> = package
        .files
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    row("files", one_line(&paths.join(", ")));
    row(
        "to",
        match target {
            Target::Site(folder) => format!("{} (a folder to be served)", folder.display()),
            Target::Repository { url, .. } => format!("a branch of {}", one_line(url)),
        },
    );
    format!("{}\n{}", table.text(), findings(&package.report))
}

fn done(package: &Package, target: &Target, published: &Published) -> String {
    let name = &package.name;
    match (published, target) {
        (Published::OnSite(folder), _) => format!(
            "published in {}\nserve that folder over https; others run: hermes skills install https://YOUR-SITE#{name}",
            folder.display()
        ),
        (Published::ThereAlready, _) => format!("{name}: the repository has it just so already"),
        (
            Published::OnBranch(branch),
            Target::Repository {
                github: Some(repo), ..
            },
        ) => format!(
            "pushed to the branch {branch}\nopen https://github.com/{repo}/compare/{branch}?expand=1 to propose it; once it is \
             merged others run: hermes skills install {repo}/{name}"
        ),
        (Published::OnBranch(branch), _) => printable(&format!(
            "pushed to the branch {branch}\nopen a pull request, or merge that branch, where the repository is kept"
        ))
        .to_string(),
    }
}
