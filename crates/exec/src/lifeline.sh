# Runs a command of a session on another machine, for as long as somebody there holds the line.
#
# $1 the session's file name; $2 `new` or `known`; $3 the command's mark; $4 bytes of input that follow on standard input
# $5 `pty` or `plain`; $6 the script `shell.sh`; $7 and so on: its arguments from the fourth
#
# Standard input stays open after the input: when it ends, we are gone or want the command gone, and everything that
# carries its mark is killed. The last thing printed is the mark and the exit code: what the command left running may
# hold the output open for ever.

folder=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/hermes/shells
(umask 077 && mkdir -p "$folder") || { printf '\036%s 125\n' "$3"; exit 125; }
file=$folder/$1 known=$2 mark=$3 bytes=$4 how=$5 script=$6
shift 6
shell=$(command -v bash || command -v sh)
set -- "$shell" -c "$script" bash "$file" "$known" "$mark" "$@"
if [ "$how" = pty ]; then
    line='stty rows 30 cols 120 -echo 2>/dev/null; exec'
    for word in "$@"; do
        line="$line '$(printf '%s.' "$word" | sed "s/'/'\\\\''/g")"
        line="${line%.}'"
    done
    SHELL=/bin/sh
    export SHELL
    set -- script -qec "$line" /dev/null
fi
if command -v setsid >/dev/null; then
    set -- setsid "$@"
else
    set -- perl -e 'setpgrp(0, 0); exec @ARGV' "$@"
fi

signal_all() {
    # Looked for first: what they start in order to clean up is not asked to end.
    marked=$(grep -lsa "HERMES_COMMAND=$mark" /proc/[0-9]*/environ)
    kill -s "$1" -- "-$command" 2>/dev/null || kill -s "$1" "$command" 2>/dev/null
    for found in $marked; do
        found=${found#/proc/}
        kill -s "$1" "${found%/environ}" 2>/dev/null
    done
}

end() {
    signal_all TERM
    # A second to clean up in, on a machine that may be busy; whoever is done sooner is not waited for.
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        kill -0 -- "-$command" 2>/dev/null || break
        sleep 0.05
    done
    signal_all KILL
    rm -f "$file.$mark" "$file.$mark.in"
    printf '\036%s 143\n' "$mark"
    exit 143
}

# A pipeline would be waited for as a whole, so the input takes a way of its own.
input=/dev/null
if [ "$bytes" -gt 0 ]; then
    input=$file.$mark.in
    mkfifo -m 600 "$input"
fi
exec 3<&0
trap end USR1
HERMES_COMMAND=$mark "$@" <"$input" 3<&- 2>&1 &
command=$!
{
    [ "$bytes" -eq 0 ] || head -c "$bytes" >"$input"
    [ "$bytes" -eq 0 ] || rm -f "$input"
    cat
    kill -s USR1 $$
} <&3 >/dev/null 2>&1 &
guard=$!
wait "$command"
status=$?
trap '' USR1
if [ "$(tail -n 1 "$file.$mark" 2>/dev/null)" = '# complete' ]; then
    mv -f "$file.$mark" "$file"
fi
# A command that took the place of its shell left nothing; that shell is not lost, but as it was before.
[ -e "$file" ] || : >"$file"
printf '\036%s %d\n' "$mark" "$status"
# Input that nobody read must still be taken, or the line breaks before this is heard.
wait "$guard"
exit "$status"
