#!/usr/bin/env bash
# A Slurm with this machine as its only node, in a folder of its own: slurm.sh start DIR | stop DIR.
# Debian packages: slurm-wlm munge. Has to be root. Afterwards: export SLURM_CONF=DIR/slurm.conf
set -euo pipefail
action=$1 dir=$(mkdir -p "$2" && cd "$2" && pwd)
pids() { cat "$dir"/*.pid 2>/dev/null || true; }

stop() {
    for pid in $(pids); do kill "$pid" 2>/dev/null || true; done
    for pid in $(pids); do for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null && sleep 0.1 || break; done; done
    rm -f "$dir"/*.pid
}

start() {
    local node port
    node=$(hostname -s)
    port=$(python3 -c 'import socket; s = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]; print(*(x.getsockname()[1] for x in s))')
    mkdir -p "$dir"/{state,spool,munge}
    chmod 755 "$dir" "$dir/munge"
    (umask 077 && head -c 128 /dev/urandom > "$dir/munge/key")
    # munged wants its files to be its own, and no folder above them that everybody may write to: so --force.
    munged --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" --log-file="$dir/munge/log" \
        --pid-file="$dir/munged.pid" --seed-file="$dir/munge/seed"
    cat > "$dir/slurm.conf" <<CONF
ClusterName=here
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=${port% *}
SlurmdPort=${port#* }
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
KillWait=5
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) Boards=1 SocketsPerBoard=1 CoresPerSocket=$(nproc) ThreadsPerCore=1 RealMemory=2000 State=UNKNOWN
PartitionName=short Nodes=$node Default=YES MaxTime=INFINITE State=UP
CONF
    export SLURM_CONF="$dir/slurm.conf"
    slurmctld
    slurmd -N "$node"
    for _ in $(seq 300); do
        [ "$(sinfo -h -o %t 2>/dev/null)" = idle ] && return
        sleep 0.1
    done
    sinfo || true
    tail -n 5 "$dir"/slurm*.log >&2
    exit 1
}

"$action"
