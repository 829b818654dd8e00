# Keeps files that come from another machine in a folder of this one.
#
# $1 `look`, `put`, `get` or `leave`; $2 the folder, `~/…` for one below the home; $3 a mark; $4 bytes of input that follow
# on standard input; $5 the name of whoever asks, another one for each start of Hermes
#
# The last thing printed is the mark and an exit code; before it comes the answer, or what went wrong. In the folder, `.sync`
# is ours: `manifest` says what was put here, `users` who is here, and in `in.MARK` files wait until all have come.

task=$1 mark=$3 bytes=$4 user=$5
case $2 in '~/'*) folder=${HOME:-/tmp}/${2#'~/'} ;; *) folder=$2 ;; esac
ours=$folder/.sync
incoming=$ours/in.$mark
umask 077

end() {
    rm -rf "$incoming"
    printf '\036%s %d\n' "$mark" "$1"
    exit "$1"
}

fail() {
    printf '%s\n' "$*"
    end 1
}

# Prints the manifest, an empty mark, and the hash of every file.
look() {
    cd "$folder" 2>/dev/null || end 0
    if [ -e config.yaml ] || [ -e SOUL.md ]; then
        fail "\`$folder\` is the home of another Hermes, which is left alone"
    fi
    if command -v sha256sum >/dev/null; then
        set -- sha256sum
    elif command -v shasum >/dev/null; then
        set -- shasum -a 256
    else
        fail 'there is no program `sha256sum`; install it there'
    fi
    cat .sync/manifest 2>/dev/null
    printf '\036\n'
    find skills \( @SKIPPED@ \) -prune -o -type f -exec "$@" {} + 2>/dev/null
    end 0
}

# Takes an archive of `files`, a list of names to `remove`, and the `manifest`, which comes last.
put() {
    command -v tar >/dev/null || fail 'there is no program `tar`; install it there'
    said=$(mkdir -p "$ours/users" "$incoming/files" 2>&1) || fail "$said"
    : >"$ours/users/$user"
    cd "$incoming" || fail "cannot enter \`$incoming\`"
    said=$(head -c "$bytes" | tar -xf - 2>&1) || fail "$said"
    [ -f manifest ] || fail 'the archive did not come whole'
    while IFS= read -r name; do
        rm -f "$folder/$name"
        (cd "$folder" && rmdir -p "${name%/*}") 2>/dev/null
    done <remove
    cd files || fail "cannot enter \`$incoming/files\`"
    # The first time, all of it takes its place at once.
    [ -e "$folder/skills" ] || [ ! -e skills ] || mv skills "$folder/skills"
    find . -type d -exec sh -c 'cd "$0" && mkdir -p "$@"' "$folder" {} + 2>/dev/null
    said=$(find . -type f -exec sh -c '
        for file; do [ -d "$0/$file" ] || mv -f "$file" "$0/$file"; done
    ' "$folder" {} + 2>&1)
    left=$(find . -type f | head -n 1)
    [ -z "$left" ] || fail "cannot write \`$folder/${left#./}\` $said"
    mv -f ../manifest "$ours/manifest" || fail "cannot write \`$ours/manifest\`"
    end 0
}

# Prints an archive of the files whose names are the input.
get() {
    cd "$folder" && mkdir -p "$incoming" && head -c "$bytes" >"$incoming/names" || fail "cannot write to \`$folder\`"
    set --
    while IFS= read -r name; do set -- "$@" "$name"; done <"$incoming/names"
    tar -cf - "$@" 2>/dev/null
    end 0
}

# Removes the files whose names are the input, unless somebody else is here, and prints those that stay against our will.
leave() {
    cd "$folder" 2>/dev/null || end 0
    rm -f ".sync/users/$user"
    # Whoever has put nothing here for a day is taken for dead.
    find .sync -type f -mmin +1440 \( -path '.sync/users/*' -o -path '.sync/in.*' \) -exec rm -f {} + 2>/dev/null
    rmdir .sync/users 2>/dev/null || end 0
    head -c "$bytes" | while IFS= read -r name; do
        rm -f "$name" 2>/dev/null
        [ ! -e "$name" ] || printf '%s\n' "$name"
        rmdir -p "${name%/*}" 2>/dev/null
    done
    end 0
}

"$task"
