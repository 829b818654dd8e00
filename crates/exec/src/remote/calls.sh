# Keeps a line for a command, call by call. Stands before a call of one of its functions; `id` is the name of the line.
#
# The folder holds: `run`, what to run; `in`, its input so far; `out.N`, pieces of its output; `held`, there until the line is
# to end; `asked`, made by each call and taken away every second, so that silence is noticed; `done`, made at the end.

folder=${TMPDIR:-/tmp}/hermes-line-$id

# Seconds of silence after which we are taken for dead. A call for output waits for a third of that.
silence_max=15

append() {
    (umask 077 && mkdir -p "$folder") || exit
    printf %s "$2" | base64 -d >>"$folder/$1"
}

start() {
    cd "$folder" || exit
    : >held
    : >>in
    if command -v setsid >/dev/null; then detached=setsid; else detached=''; fi
    $detached sh -c "silence_max=$silence_max$keep" </dev/null >/dev/null 2>&1 &
    echo started
}

release() {
    rm -f "$folder/held"
}

# Says `end`, or `more` and the number of the next piece, and then the pieces from $1 on in base64.
fetch() {
    cd "$folder" 2>/dev/null || { echo end; exit; }
    : >asked
    for piece in out.*; do
        [ "${piece#out.}" -ge "$1" ] 2>/dev/null || rm -f "$piece"
    done
    rounds=0
    while [ ! -e "out.$1" ] && [ ! -e done ] && [ "$rounds" -lt $((silence_max * 20 / 3)) ]; do
        rounds=$((rounds + 1))
        sleep 0.05
    done
    if [ ! -e "out.$1" ] && [ -e done ] && [ ! -e "out.$1" ]; then
        echo end
        exit
    fi
    next=$1
    while [ -e "out.$next" ] && [ $((next - $1)) -lt 16 ]; do next=$((next + 1)); done
    echo "more $next"
    piece=$1
    while [ "$piece" -lt "$next" ]; do
        cat "out.$piece"
        piece=$((piece + 1))
    done | base64
}

keep='
feed() {
    at=0
    while [ -e held ]; do
        size=$(($(wc -c <in)))
        if [ "$size" -gt "$at" ]; then
            tail -c "+$((at + 1))" in | head -c "$((size - at))"
            at=$size
        else
            sleep 0.1
        fi
    done
}
drain() {
    piece=1000000
    while dd bs=65536 count=1 of=part 2>/dev/null; [ -s part ]; do
        mv part "out.$piece"
        while [ -e held ] && [ -e "out.$((piece - 64))" ]; do sleep 0.05; done
        piece=$((piece + 1))
    done
    : >done
}
{ feed | sh run 2>&1 | drain; } &
silence=0
while [ -e held ] && [ "$silence" -lt "$silence_max" ]; do
    sleep 1
    silence=$((silence + 1))
    [ ! -e asked ] || { rm -f asked; silence=0; }
done
rm -f held
# What was killed says so, and somebody may still want to hear it.
sleep "$silence_max"
folder=$PWD
cd / && rm -rf "$folder"
'
