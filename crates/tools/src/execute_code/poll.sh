# Brings a script the answer to its last call, waits for the next call and prints it: its name, then the call itself.
# Prints nothing when there is none for a while. Holds no single quote, since it is given in a pair of them.
#
# $1 the folder that the script made; $2 the call that standard input answers, or nothing; $3 bytes of a call at most

cd "$1" 2>/dev/null || { sleep 0.1; exit 0; }
if [ -n "$2" ]; then
    cat >"$2.part" && rm -f "$2.call" && mv "$2.part" "$2.answer" || exit 1
fi
turns=0
while [ "$turns" -lt 200 ]; do
    for call in *.call; do
        [ -f "$call" ] || continue
        echo "${call%.call}"
        # One byte too many tells that it is too long.
        head -c "$(($3 + 1))" "$call"
        exit 0
    done
    turns=$((turns + 1))
    sleep 0.05
done
