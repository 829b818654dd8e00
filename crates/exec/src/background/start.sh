# Starts a command of the session's shell in the background. Stands before a call of itself, in parentheses.
#
# $1 the folder of the process; $2 `pty` or `plain`; $3 the command.
# Its input is the fifo `in`, held open until somebody closes it. Its output goes to the last two of the files `out.N`.

__hermes_ring() {
    __hermes_n=100000
    while :; do
        LC_ALL=C command dd bs=4096 count=2048 of="$1/out.$__hermes_n" 2>"$1/read"
        IFS='+ ' read -r __hermes_whole __hermes_part __hermes_rest <"$1/read"
        [ $((__hermes_whole + __hermes_part)) -ge 2048 ] || break
        command rm -f "$1/out.$((__hermes_n - 1))"
        __hermes_n=$((__hermes_n + 1))
    done
    : >"$1/drained"
}

__hermes_run() {
    set +eu
    command sleep 2147483647 >"$1/in" &
    __hermes_holder=$!
    echo "$__hermes_holder" >"$1/holder"
    case $2 in
        pty) SHELL=/bin/sh command script -qefc "stty rows 30 cols 120; $3" /dev/null <"$1/in" ;;
        *) (eval "$3") <"$1/in" ;;
    esac
    echo $? >"$1/exit.new"
    command mv "$1/exit.new" "$1/exit"
    # Also when somebody has removed the folder meanwhile.
    command kill "$__hermes_holder" 2>/dev/null
}

__hermes_background() {
    umask 077
    command mkdir -p "$1" && command mkfifo "$1/in" || return 1
    printf '%s\n' "$HERMES_COMMAND" >"$1/mark"
    {
        __hermes_run "$@" 2>&1 | __hermes_ring "$1"
    } </dev/null >/dev/null 2>&1 &
    # The shell leads its group unless something was put before it.
    __hermes_group=$(command cut -d ' ' -f 5 /proc/$$/stat 2>/dev/null || echo $$)
    echo "$!" "$__hermes_group" "$(command cut -d ' ' -f 22 /proc/$!/stat 2>/dev/null || command ps -o lstart= -p $!)" >"$1/process"
    echo "started $!"
}
