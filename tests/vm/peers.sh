# The peer of a loopback connection is identified with or without tcp_diag, and strangers are refused either way.

served() {
  muster get jobs >/dev/null 2>&1
}

stranger_refused() {
  ! su alice -c 'muster get jobs' >/dev/null 2>&1
}

coordinator /tmp/c
check p18b_served_without_tcp_diag served || show /tmp/c.log
check p18b_stranger_refused_without_tcp_diag stranger_refused
modules
check p18b_served_with_tcp_diag served
check p01_stranger_refused stranger_refused
