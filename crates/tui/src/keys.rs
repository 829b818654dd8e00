//! What the keys do, as `?` shows it. `docs/keys.md` says more.

pub(crate) const TABLE: &str = "\
Enter                  send
\\ Enter, Alt-Enter     a new line; Shift-Enter, Ctrl-J too
!COMMAND               run a command of your own
@PATH                  bring a file along; Tab completes
/                      commands; /help lists them
Esc, Ctrl-C            stop it
Esc Esc                go back to an earlier message
Shift-Tab              ask, accept edits, plan
Ctrl-T                 read all of it, with what tools printed
Ctrl-O                 show or hide what tools print
Ctrl-R, ↑ ↓            earlier messages
Ctrl-G                 write in $EDITOR
Ctrl-V                 attach the image in the clipboard
Ctrl-L, Ctrl-Z         draw anew, go into the background
Ctrl-D                 leave";
