#!/usr/bin/env python3
"""slurm.py PROGRAM CASE: sweeps on a Slurm that this script starts. Status 77: no Slurm can be started here."""
import filecmp
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # nothing is written beside the sources
from slurm_cluster import CannotStart, Cluster

WAIT_S = 120
LONG = 20000000  # iterations that take several minutes
SCENARIO = '''\
# Question: does a sweep on a cluster do what it says?
title: A small sweep
topology: {kind: pair, preset: ha-pacs-tca-2013, with: {board: {fidelity: twin}}, cable: pearl-gen2-x8}
sweep: {nodes.*.board.clock: [125 MHz, 250 MHz], nodes.*.board.dmac_read_tags: [1, 16]}
runs:
  - {series: dma, workload: pingpong, method: register, node: node0, peer: node1,
     bytes: [8 B, 4 KiB], iterations: 2, warmup: 1}
'''


def until(holds, what):
    end = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end, 'waited in vain: ' + what
        time.sleep(0.05)


def files_of(directory):
    return sorted(os.path.relpath(os.path.join(folder, name), directory)
                  for folder, _, names in os.walk(directory) for name in names
                  if name != 'report.html')  # which names its directory, and is not written with --quiet


def same(one, two):
    assert files_of(one) == files_of(two), (files_of(one), files_of(two))
    for name in files_of(one):
        assert filecmp.cmp(os.path.join(one, name), os.path.join(two, name), shallow=False), name


def holds_interrupts(process):
    with open(f'/proc/{process.pid}/status') as file:
        return int(re.search(r'^SigBlk:\s*(\w+)$', file.read(), re.M).group(1), 16) & 1 << signal.SIGINT - 1 != 0


class Sweeps:
    """The program in a directory of its own, and the cluster."""

    def __init__(self, program, cluster, work):
        self.program, self.cluster, self.work = program, cluster, work
        self.write('s.yaml', SCENARIO)

    def write(self, name, text):
        with open(os.path.join(self.work, name), 'w') as file:
            file.write(text)

    def path(self, *names):
        return os.path.join(self.work, *names)

    def start(self, *words, cwd=None):
        return subprocess.Popen([self.program, 'run', *words], cwd=cwd or self.work, env=self.cluster.environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, process, status):
        output, errors = process.communicate(timeout=WAIT_S)
        assert process.returncode == status, (process.args, process.returncode, output, errors)
        return output, errors

    def run(self, *words, status=0, cwd=None):
        return self.end(self.start(*words, cwd=cwd), status)

    def job(self, directory):
        with open(self.path(directory, 'slurm', 'job')) as file:
            return re.search(r'^job (\d+)$', file.read(), re.M).group(1)

    def submitted(self, directory):
        until(lambda: os.path.exists(self.path(directory, 'slurm', 'job')), 'a submitted job')
        return self.job(directory)

    def states(self, job):
        lines = self.cluster.run('squeue', '--noheader', '--array', '--states=all', '--jobs=' + job,
                                 '--format=%K %T').split('\n')
        return dict(line.split(' ') for line in lines if line)

    def drain(self):
        self.cluster.run('scontrol', 'update', 'nodename=n0', 'state=drain', 'reason=test')

    def undrain(self):
        self.cluster.run('scontrol', 'update', 'nodename=n0', 'state=resume')

    def measured(self, directory):
        points = self.path(directory, 'points')
        return len([name for name in os.listdir(points) if name.endswith('.csv')]) if os.path.isdir(points) else 0


def the_same_bytes(sweeps):
    sweeps.run('s.yaml', '--quiet', '--out', 'local')
    output, errors = sweeps.run('s.yaml', '--out', 'slurm', '--engine', 'slurm')
    assert errors == '' and 'with 4 tasks\n' in output and ' 4 points, 0 of them kept' in output, (output, errors)
    same(sweeps.path('local'), sweeps.path('slurm'))
    output, _ = sweeps.run('s.yaml', '--out', 'slurm', '--engine', 'slurm')
    assert 'Submitted' not in output and ' 4 points, 4 of them kept' in output, output
    output, _ = sweeps.run('s.yaml', '--out', 'slurm', '--engine', 'slurm', '--fresh', '--array-size', '3',
                           '--partition', 'p', '--time', '5')
    assert 'with 3 tasks\n' in output and ' 4 points, 0 of them kept' in output, output
    same(sweeps.path('local'), sweeps.path('slurm'))


def names_of_any_kind(sweeps):
    odd = '-o %a\'"`$(touch x)\\\n#SBATCH --hold\n;&é'
    os.mkdir(sweeps.path(odd))
    sweeps.write(os.path.join(odd, '-s\n.yaml'), SCENARIO)
    words = ['--quiet', '--set', "title=it's \"odd\" $HOME", '--out=' + odd, '--', '-s\n.yaml']
    sweeps.run('--engine', 'slurm', '--array-size', '1', *words, cwd=sweeps.path(odd))
    os.rename(sweeps.path(odd, odd), sweeps.path('slurm'))
    sweeps.run(*words, cwd=sweeps.path(odd))
    same(sweeps.path(odd, odd), sweeps.path('slurm'))
    assert sorted(os.listdir(sweeps.path(odd))) == sorted([odd, '-s\n.yaml']), os.listdir(sweeps.path(odd))


def a_point_that_fails(sweeps):
    words = ['s.yaml', '--engine', 'slurm', '--out', 'out', '--set', 'sweep={time_limit: [1 us, 1 s, 2 us, 2 s]}']
    for tasks in (2, 1):
        output, errors = sweeps.run(*words, '--array-size', str(tasks), status=3)
        log = re.search(r"^tcasim: s\.yaml: the point '2 us' failed: s\.yaml \(2 us\): series 'dma' reached the time "
                        r"limit after 2000000 ps of simulated time; log: (out/slurm/\d+-3\.log)$", errors, re.M)
        assert log and "'1 us' failed" in errors and "'1 s'" not in errors, errors
        with open(sweeps.path(log.group(1))) as file:
            assert 'node0 waits for time' in file.read()
        assert f'with {tasks} task' in output, output
        assert ('4 points, 0 of them kept from an earlier run, 2 failed' in output if tasks == 2 else
                '4 points, 2 of them kept from an earlier run, 2 failed' in output), output
    sweeps.run('s.yaml', '--out', 'local', '--set', 'sweep={time_limit: [1 us, 1 s, 2 us, 2 s]}', status=3)
    os.rename(sweeps.path('out', 'slurm'), sweeps.path('logs'))
    same(sweeps.path('local'), sweeps.path('out'))
    assert len(os.listdir(sweeps.path('logs'))) == 2, os.listdir(sweeps.path('logs'))


def a_node_that_is_drained(sweeps):
    values = ['s.yaml', '--set', 'sweep={runs.0.iterations: [20000, 20001, 20002, 20003, 20004, 20005]}']
    process = sweeps.start(*values, '--engine', 'slurm', '--out', 'slurm')
    job = sweeps.submitted('slurm')
    until(lambda: 'RUNNING' in sweeps.states(job).values(), 'a task that runs')
    sweeps.drain()
    until(lambda: 'RUNNING' not in sweeps.states(job).values(), 'the end of the tasks that ran')
    assert 'PENDING' in sweeps.states(job).values(), sweeps.states(job)
    time.sleep(3)
    assert process.poll() is None, 'the program did not wait for the pending tasks'
    assert 0 < sweeps.measured('slurm') < 6, sweeps.measured('slurm')
    sweeps.undrain()
    output, errors = sweeps.end(process, 0)
    assert errors == '' and '6 points, 0 of them kept from an earlier run, 0 failed' in output, (output, errors)
    sweeps.run(*values, '--quiet', '--out', 'local')
    same(sweeps.path('local'), sweeps.path('slurm'))


def a_task_that_is_killed(sweeps):
    words = ['s.yaml', '--engine', 'slurm', '--out', 'out', '--set', f'sweep={{runs.0.iterations: [2, {LONG}, 3]}}']
    process = sweeps.start(*words)
    job = sweeps.submitted('out')
    until(lambda: sweeps.measured('out') == 2, 'the short points')
    sweeps.cluster.run('scancel', job + '_2')
    output, errors = sweeps.end(process, 2)
    assert re.search(rf"the point '{LONG}' failed: (its job {job}_2 ended as CANCELLED|ended by signal 15)",
                     errors), errors
    assert errors.count(' failed') == 1 and ' 1 failed' in output, (output, errors)
    process = sweeps.start(*words)  # only the point that failed runs again
    until(lambda: 'RUNNING' in sweeps.states(sweeps.submitted('out')).values(), 'a task that runs')
    job = sweeps.job('out')
    process.send_signal(signal.SIGINT)
    output, errors = sweeps.end(process, -signal.SIGINT)
    assert output == f'Submitted job {job} with 1 task\n', output
    assert errors == (f'tcasim: interrupted; job {job} was cancelled; finished points are kept, and the same command '
                      'continues from there\n'), errors
    until(lambda: set(sweeps.states(job).values()) == {'CANCELLED'}, 'the cancelled job')
    output, _ = sweeps.run('s.yaml', '--out', 'out', '--set', 'sweep={runs.0.iterations: [2, 3]}')
    assert '2 points, 2 of them kept' in output, output


def detached(sweeps):
    words = ['s.yaml', '--out', 'out', '--set', 'sweep={runs.0.iterations: [2, 300, 3]}']
    sweeps.drain()  # the jobs wait
    output, errors = sweeps.run(*words, '--engine', 'slurm', '--detach')
    job = sweeps.job('out')
    assert output.startswith(f'Submitted job {job} with 3 tasks; ') and errors == '', (output, errors)
    assert not os.path.exists(sweeps.path('out', 'data.csv'))
    for engine in ('slurm', 'local'):
        _, errors = sweeps.run(*words, '--engine', engine, status=2)
        assert errors == (f'tcasim: out: job {job} of this sweep still runs there; --resume collects it, scancel {job} '
                          'ends it\n'), errors
    _, errors = sweeps.run('s.yaml', '--out', 'out', '--engine', 'slurm', status=2)
    assert f'out: job {job} of another sweep still runs there; scancel {job} ends it\n' in errors, errors
    _, errors = sweeps.run('s.yaml', '--out', 'out', '--resume', status=2)
    assert errors == f'tcasim: --resume: job {job} in out is of another sweep\n', errors
    process = sweeps.start(*words, '--resume')  # stopping a collection leaves the jobs alone
    until(lambda: holds_interrupts(process), 'the collection')
    process.send_signal(signal.SIGINT)
    _, errors = sweeps.end(process, -signal.SIGINT)
    assert errors == f'tcasim: interrupted; job {job} goes on, and --resume collects it\n', errors
    assert set(sweeps.states(job).values()) == {'PENDING'}, sweeps.states(job)
    sweeps.undrain()
    output, errors = sweeps.run(*words, '--resume')
    assert errors == '' and '3 points, 0 of them kept from an earlier run, 0 failed' in output, (output, errors)
    sweeps.run(*words, '--quiet', '--out', 'local')
    same(sweeps.path('local'), sweeps.path('out'))
    _, errors = sweeps.run(*words, '--resume', status=2)
    assert errors == 'tcasim: --resume: out has no submitted jobs\n', errors


def a_waiting_program_that_is_killed(sweeps):
    words = ['s.yaml', '--out', 'out', '--set', 'sweep={runs.0.iterations: [2, 20000]}']
    process = sweeps.start(*words, '--engine', 'slurm')
    job = sweeps.submitted('out')
    process.kill()
    sweeps.end(process, -signal.SIGKILL)
    output, errors = sweeps.run(*words, '--resume')
    assert errors == '' and '2 points, 0 of them kept from an earlier run, 0 failed' in output, (output, errors)
    assert set(sweeps.states(job).values()) == {'COMPLETED'}, sweeps.states(job)


def what_slurm_refuses(sweeps):
    _, errors = sweeps.run('s.yaml', '--engine', 'slurm', '--partition', '-nowhere', status=2)
    assert re.fullmatch(r'tcasim: --engine slurm: sbatch refused the jobs: .*[Ii]nvalid partition.*\n', errors), errors
    _, errors = sweeps.run('s.yaml', '--engine', 'slurm', '--time', 'soon', status=2)
    assert re.fullmatch(r'tcasim: --engine slurm: sbatch refused the jobs: .*--time.*\n', errors), errors
    _, errors = sweeps.run('s.yaml', '--engine', 'slurm', '--array-size', '5000', status=2)
    assert errors == 'tcasim: --array-size 5000: this Slurm takes at most 1000 (its MaxArraySize)\n', errors
    assert sweeps.cluster.run('squeue', '--noheader', '--states=all') == ''
    assert not os.path.exists(sweeps.path('results', 's', 'data.csv'))


CASES = [the_same_bytes, names_of_any_kind, a_point_that_fails, a_node_that_is_drained, a_task_that_is_killed, detached,
         a_waiting_program_that_is_killed, what_slurm_refuses]


def main():
    program, name = os.path.abspath(sys.argv[1]), sys.argv[2]
    case, = [each for each in CASES if each.__name__ == name]
    with tempfile.TemporaryDirectory(prefix='tcasim-slurm-') as folder:
        os.chmod(folder, 0o755)
        os.mkdir(os.path.join(folder, 'slurm'))
        os.mkdir(os.path.join(folder, 'work'))
        try:
            with Cluster(os.path.join(folder, 'slurm')) as cluster:
                case(Sweeps(program, cluster, os.path.join(folder, 'work')))
        except CannotStart as reason:
            print(f'skipped: {reason}')
            sys.exit(77)


if __name__ == '__main__':
    main()
