# emulated_job.sh, to be read in the emulated machine by what emulated.sh has written: runs the programs, and leaves in
# /run/results what each one printed, or why it failed.
. "$source/tests/programs/machine_programs.sh"

job() {
    echo "$(uname -r), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) processors" >/run/results/machine
    for program in "$@"; do
        began=$(date +%s)
        prepare "$program"
        run_by env
        if [ $status = 0 ]; then
            { results_show && output_show; } >"/run/results/$program"
        else
            { echo "it failed with status $status" && cat "$folder/log"; } >"/run/results/$program"
        fi
        echo $(($(date +%s) - began)) >"/run/results/$program.seconds"
    done
}
