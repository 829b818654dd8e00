# Looks at a process in the background, and tells it what to do. Stands before a call of one of its functions.
# $1 is the folder of the process in each of them. The process may write there, so names are not trusted to be numbers.

digits='[0-9][0-9][0-9][0-9][0-9][0-9]'

is_running() {
    [ ! -e "$1/exit" ] || return 1
    read -r pid group since <"$1/process" 2>/dev/null || return 1
    now=$(cut -d ' ' -f 22 "/proc/$pid/stat" 2>/dev/null || ps -o lstart= -p "$pid" 2>/dev/null)
    [ -n "$now" ] && [ "$now" = "$since" ]
}

state() {
    if [ -e "$1/exit" ]; then
        echo exited "$(cat "$1/exit")"
    elif is_running "$1"; then
        echo running 0
    elif [ -e "$1/exit" ]; then
        echo exited "$(cat "$1/exit")"
    else
        echo lost 0
    fi
}

# The state, the file and the byte the output has come to, and the last $2 bytes of it, or all since byte $3 of file $2.
look() {
    state=$(state "$1")
    # What it printed last may still be on its way to the file.
    for i in 1 2 3 4 5; do
        case $state in exited*) [ -e "$1/drained" ] || sleep 0.05 ;; *) break ;; esac
    done
    last=''
    for last in "$1"/out.$digits; do :; done
    bytes=0
    [ ! -f "$last" ] || bytes=$(($(wc -c <"$last")))
    echo "$state" "${last##*.}" "$bytes"
    [ -f "$last" ] || return 0
    if [ -z "${3-}" ]; then
        cat "$1"/out.$digits | tail -c "$2"
        return
    fi
    for file in "$1"/out.$digits; do
        case $((${file##*.} - $2)) in
            -*) ;;
            0) tail -c "+$(($3 + 1))" "$file" ;;
            *) cat "$file" ;;
        esac
    done | tail -c 65536
}

await() {
    for i in $(seq "$(($2 * 10))"); do
        is_running "$1" || return 0
        sleep 0.1
    done
}

signal() {
    [ -z "$group" ] || kill -s "$2" -- "-$group" 2>/dev/null
    mark=''
    read -r mark 2>/dev/null <"$1/mark"
    # One that was killed before it wrote its mark down has none, and without one everybody's commands would be found.
    case ${#mark}:$mark in
        16:*[!0-9a-f]*) return ;;
        16:*) ;;
        *) return ;;
    esac
    for found in $(grep -lsa "HERMES_COMMAND=$mark" /proc/[0-9]*/environ); do
        found=${found#/proc/}
        kill -s "$2" "${found%/environ}" 2>/dev/null
    done
}

# Whether anybody in the group $1 lives. The dead whom nobody has buried yet, as where init is slow, do not count.
lives() {
    kill -0 -- "-$1" 2>/dev/null || return 1
    [ ! -r /proc/self/stat ] || grep -qsE "^[0-9]+ \(.*\) [^ZX] [0-9]+ $1 " /proc/[0-9]*/stat
}

end() {
    group=''
    was_running=''
    if is_running "$1"; then was_running=1; else group=''; fi
    signal "$1" TERM
    [ -z "$was_running" ] || for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        lives "$group" || break
        sleep 0.1
    done
    signal "$1" KILL
    [ -z "$was_running" ] || echo killed >"$1/exit"
}

type_into() {
    is_running "$1" && [ ! -e "$1/closed" ] || { echo 'not running, or its input is closed'; return 1; }
    cat >"$1/in"
}

close_input() {
    is_running "$1" || { echo 'not running'; return 1; }
    : >"$1/closed"
    kill "$(cat "$1/holder")" 2>/dev/null
}
