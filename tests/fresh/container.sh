#!/bin/sh
# container.sh <source tree>: the steps of the Containerfile, read from it and executed in minimal roots, because a
# machine of tests rarely has a container tool; then the steps of the jobs for hosted CI, as the image's user, on a
# checkout with a verbs program; and once more with an expectation that does not hold. The build context is a clone of
# the committed files. As in Debian's slim images, packages come without documents and translations. Status 77: not
# possible on this machine (the reason is printed).
set -eu
source=$1
tree=/
needs='git python3'

# shellcheck source=tests/fresh/machine.sh
. "$(dirname "$0")/machine.sh"
python3 -c 'import yaml' 2>/dev/null || skip 'there is no python3-yaml'
git -c safe.directory='*' -C "$source" rev-parse -q --verify HEAD >/dev/null || skip "$source is no clone"

# --- what a container tool provides -----------------------------------------------------------------------------------

context=$root/context
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' \
    git clone -q --no-local --depth 1 "file://$(cd "$source" && pwd)" "$context"
(cd "$context" && git ls-files -z -ci --exclude-from=.dockerignore | xargs -0r rm --)

mv "$root/machine" "$root/base"
cat >"$root/base/etc/dpkg/dpkg.cfg.d/slim" <<'END'
path-exclude /usr/share/doc/*
path-include /usr/share/doc/*/copyright
path-exclude /usr/share/info/*
path-exclude /usr/share/lintian/*
path-exclude /usr/share/locale/*
path-exclude /usr/share/man/*
END
rm -rf "$root"/base/usr/share/info/* "$root"/base/usr/share/locale/* "$root"/base/usr/share/man/*
find "$root/base/usr/share/doc" -type f ! -name copyright -delete

# step <script>: runs it as the current user in the current directory of the current stage.
step() {
    printf '%s\n' "$1" >"$root/machine/tmp/step.sh"
    inside "$user" 'sh /tmp/step.sh' >"$root/log" 2>&1 || {
        tail -n 60 "$root/log"
        rm "$root/machine/tmp/step.sh"
        return 1
    }
    rm "$root/machine/tmp/step.sh"
}

stage=
stage_begin() { # <image> AS <name>, or <image>
    [ "${1%% *}" = "debian:$VERSION_CODENAME-slim" ] || skip "the image is ${1%% *}, this Debian is $VERSION_CODENAME"
    [ -z "$stage" ] || mv "$root/machine" "$root/stage-$stage"
    case $1 in *' AS '*) stage=${1##* AS } ;; *) stage=last ;; esac
    cp -a "$root/base" "$root/machine"
    user=root tree=/
}

copy() { # [--from=<stage>] <files> <folder>
    from=$context
    case $1 in
    --from=*)
        from=$root/stage-${1#--from=}
        shift
        ;;
    esac
    [ $# = 2 ] || fail "COPY of the form $*"
    case $2 in /*) to=$root/machine$2 ;; *) to=$root/machine$tree/$2 ;; esac
    mkdir -p "$to"
    for file in "$from"/$1; do # a pattern
        [ -e "$file" ] || fail "COPY finds no $file"
        if [ -d "$file" ]; then cp -a "$file/." "$to"; else cp -a "$file" "$to"; fi
    done
}

# --- the steps of the image -------------------------------------------------------------------------------------------

# One line for each instruction.
awk '/^[ \t]*#/ { next } sub(/\\$/, "") { line = line $0; next } { line = line $0; if (line != "") print line; line = "" }' \
    "$context/Containerfile" >"$root/instructions"
entry=
while read -r instruction arguments <&3; do
    printf '%s %s\n' "$instruction" "$arguments"
    case $instruction in
    FROM) stage_begin "$arguments" ;;
    LABEL) ;;
    WORKDIR)
        tree=$arguments
        mkdir -p "$root/machine$tree"
        ;;
    USER) user=$arguments ;;
    COPY)
        set -f
        # shellcheck disable=SC2086 # words, as a container tool splits them
        set -- $arguments
        set +f
        copy "$@"
        ;;
    RUN) step "$arguments" || fail "RUN $arguments" ;;
    ENTRYPOINT) entry=$(printf '%s' "$arguments" | python3 -c 'import json, shlex, sys; print(shlex.join(json.load(sys.stdin)))') ;;
    *) fail "this test does not know the instruction $instruction" ;;
    esac
done 3<"$root/instructions"
[ "$user" != root ] || fail 'the image runs programs as root'

step "$entry --version && $entry run --quiet --set fidelity=flow" || fail 'the entry point'
grep -q "^revision $(git -C "$context" rev-parse HEAD)" "$root/log" || fail 'the program does not know its revision'
[ "$(wc -l <"$root/machine$tree/results/hanawa2013-fig7-8-pingpong/data.csv")" -gt 20 ] || fail 'no results'
for program in ib_send_lat ibv_devinfo mpirun mpicc make; do
    step "command -v $program" || fail "the image has no $program"
done
step "$entry exec /usr/share/tcasim/scenarios/smoke/verbs-ibsim0.yaml --on node0 ib_send_lat --on node1 'ib_send_lat node0'" ||
    fail 'perftest in the image'

# --- the steps of the jobs --------------------------------------------------------------------------------------------

# Prints the commands of a job file.
job_commands() {
    python3 - "$1" <<'END'
import sys
import yaml

job = yaml.safe_load(open(sys.argv[1], encoding='utf-8'))
job = job.get('jobs', job)['verbs']
print('\n'.join(job['script'] if 'script' in job else [step['run'] for step in job['steps'] if 'run' in step]))
END
}

for file in github.yml gitlab.yml; do
    commands=$(job_commands "$context/scenarios/attached/ci/$file")
    printf '%s\n%s\n' "$file" "$commands"
    tree=/builds/$file # a checkout belongs to the image's user
    mkdir -p "$root/machine$tree"
    cp -a "$context/scenarios/attached/ci" "$root/machine$tree/ci"
    chroot "$root/machine" chown -R "$user": "$tree"
    step "set -e
$commands" || fail "the job of $file"
    cat "$root/log"
    grep -q '<testcase' "$root/machine$tree/reports/pair.xml" || fail 'no testcases in the report'
    grep -q '<testcase' "$root/machine$tree/reports/seeds.xml" || fail 'no testcases in the report of the seeds'
    ! grep -l '<failure' "$root/machine$tree"/reports/*.xml || fail 'the report has failures'

    echo 'another output' >"$root/machine$tree/ci/expected.txt"
    ! step "set -e
$commands" >"$root/refused" || fail 'the job ends well although an expectation does not hold'
    grep -q '<failure' "$root/machine$tree/reports/pair.xml" || {
        cat "$root/refused"
        fail 'the report does not show the expectation that does not hold'
    }
done
printf "the Containerfile's steps work in a bare %s %s\n" "$ID" "$VERSION_CODENAME"
