"""A Slurm of one node on this machine's loopback, with a configuration of its own in a scratch directory."""
import os
import shutil
import signal
import socket
import subprocess
import time

PROGRAMS = ['munged', 'slurmctld', 'slurmd', 'sbatch', 'squeue', 'scancel', 'scontrol', 'sinfo']
START_S = 30
TRIES = 3  # another program may take a free port before a daemon does

CONFIGURATION = '''\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
ReturnToService=2
KillWait=2
NodeName=n0 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
'''


class CannotStart(Exception):
    """Why there is no Slurm here."""


class DaemonEnded(CannotStart):
    """One of its daemons has ended: another program may have its port."""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(('127.0.0.1', 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Cluster:
    """Starts in `with`; the daemons are children of this process and end with it."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        base = self.folder
        for attempt in range(TRIES):
            self.use(os.path.join(base, str(attempt)))
            try:
                self.start()
                return self
            except BaseException as reason:
                self.__exit__()
                if not isinstance(reason, DaemonEnded) or attempt + 1 == TRIES:
                    raise

    def use(self, folder):
        os.mkdir(folder)
        self.folder = folder
        self.daemons = []
        self.environment = {**os.environ, 'SLURM_CONF': os.path.join(folder, 'slurm.conf'),
                            'PATH': os.environ['PATH'] + ':/usr/sbin:/sbin'}

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def start(self):
        missing = [name for name in PROGRAMS if shutil.which(name, path=self.environment['PATH']) is None]
        if missing:
            raise CannotStart('not installed: ' + ' '.join(missing))
        for name in ('state', 'spool'):
            os.makedirs(os.path.join(self.folder, name))
        user = subprocess.run(['id', '-un'], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
        with open(self.environment['SLURM_CONF'], 'w') as file:
            file.write(CONFIGURATION.format(host=socket.gethostname().split('.')[0], ports=free_ports(2), user=user,
                                            folder=self.folder))
        key = os.path.join(self.folder, 'munge.key')
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o400), 'wb') as file:
            file.write(os.urandom(1024))
        paths = [f'--{what}={self.folder}/munge.{kind}' for what, kind in
                 (('socket', 'socket'), ('log-file', 'log'), ('pid-file', 'pid'), ('seed-file', 'seed'))]
        self.daemon('munged', '--foreground', '--force', '--num-threads=1', '--key-file=' + key, *paths)
        self.until(lambda: os.path.exists(self.folder + '/munge.socket'), 'munged')
        self.daemon('slurmctld', '-D')
        self.daemon('slurmd', '-D', '-N', 'n0')
        self.until(lambda: self.run('sinfo', '--noheader', '--format=%T', check=False).strip() == 'idle', 'slurmd')

    def daemon(self, *words):
        with open(os.path.join(self.folder, words[0] + '.out'), 'w') as file:
            self.daemons.append(subprocess.Popen(words, env=self.environment, stdin=subprocess.DEVNULL, stdout=file,
                                                 stderr=subprocess.STDOUT))

    def until(self, holds, what):
        end = time.monotonic() + START_S
        while not holds():
            if any(daemon.poll() is not None for daemon in self.daemons):
                raise DaemonEnded(f'{what} does not start: ' + self.last_words())
            if time.monotonic() > end:
                raise CannotStart(f'{what} does not start: ' + self.last_words())
            time.sleep(0.1)

    def last_words(self):
        lines = []
        for daemon in self.daemons:
            with open(os.path.join(self.folder, daemon.args[0] + '.out'), errors='replace') as file:
                lines += file.read().splitlines()[-3:]
        return ' / '.join(lines)

    def run(self, *words, check=True):
        done = subprocess.run(words, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60)
        assert not check or done.returncode == 0, (words, done.stdout)
        return done.stdout
