# A machine in power.py or standby.py: coordinator and agent (role=head on the kernel's command line) or an agent alone (role=node); with store=URL, the
# coordinator is one of several. All state is on the disk that loses power.
for module in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk failover net_failover virtio_net; do
  insmod "/lib/modules/$module.ko"
done
modules

value() {  # value NAME: the value of NAME=… on the kernel's command line
  sed -n "s/.* $1=\([^ ]*\).*/\1/p" /proc/cmdline
}

daemon() {  # daemon COMMAND...: a daemon that exits by itself is a fault
  LD_PRELOAD=$(value preload) "$@"
  echo "ENDED $2"
}

ip address add 10.0.2.15/24 dev eth0
ip link set eth0 up
ip route add default via 10.0.2.2
echo "10.0.2.2 $(value witness)" > /etc/witness
mkdir /disk
mount -t ext4 /dev/vda /disk || { echo "the disk cannot be mounted"; exit; }
set -- muster coordinator --data-dir /disk/coordinator --api 0.0.0.0:7117 --listen 0.0.0.0:7118 --insecure --log-level warn \
  --pod-failure-backoff-base 100ms --pod-failure-backoff-max 400ms
store=$(value store)
if [ -n "$store" ]; then
  ip address add "$(value peers | sed 's/:.*//')/24" dev eth1
  ip link set eth1 up
  [ ! -e /disk/token ] || set -- "$@" --join-token /disk/token
  # One that loses the lead ends with 1 and is started again, as by its unit.
  while true; do
    LD_PRELOAD=$(value preload) "$@" --store "$store" --peers "$(value peers)"
    status=$?
    [ $status = 1 ] || { echo "ENDED coordinator: $status"; break; }
  done &
elif [ "$(value role)" = head ]; then
  daemon "$@" &
fi
# The other end is never TLS here: what is cut is the power, not the network.
daemon muster agent --coordinator "$(value coordinator)" --insecure --name "$(value name)" --slots "$(value slots)" --work-dir /disk/agent --log-level warn &
while true; do sleep 1000; done
