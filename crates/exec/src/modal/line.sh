# Runs a script for as long as somebody listens.
#
# $1 the name of the line: its file is made again and again by whoever listens, and taken away here
# $2 how many bytes at the beginning of standard input are the script, or 0; then $3 and so on are what `sh -c` takes

# Passes the input on; the end of it is what ends the script.
feed='
(
    silence=0
    while [ "$silence" -lt 15 ] && sleep 1 && kill -0 $$; do
        silence=$((silence + 1))
        [ ! -e "$1" ] || { rm -f "$1"; silence=0; }
    done
    kill $$
) </dev/null >/dev/null 2>&1 &
exec cat
'
heard=${TMPDIR:-/tmp}/hermes-line-$1
[ "$2" -eq 0 ] || set -- "$1" "$2" "$(head -c "$2")"
shift 2
sh -c "$feed" hermes "$heard" | sh -c "$@"
