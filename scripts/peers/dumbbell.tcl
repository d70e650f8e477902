# The dumbbell on ns-2: ns dumbbell.tcl HEADERS RATE_MBIT RTT_MS BUFFER FLOWS SECONDS HOPS
# Standard TCP with SACK and delayed acknowledgments; the flows start evenly over the first tenth of the time.
# HEADERS is lean, as people run it: packets carry only the headers that TCP needs. Or all: they carry all that ns-2 has.
lassign $argv headers rate rtt buffer flows seconds hops
if {$headers eq "lean"} {
    remove-all-packet-headers
    add-packet-header IP TCP Flags
}
set ns [new Simulator]
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right ${rate}Mb [expr {$rtt / 2.0}]ms DropTail
$ns queue-limit $left $right $buffer
$ns queue-limit $right $left $buffer
for {set i 0} {$i < $flows} {incr i} {
    set from $left
    set to $right
    if {$hops == 3} {
        set from [$ns node]
        set to [$ns node]
        foreach {a b} [list $from $left $right $to] {
            $ns duplex-link $a $b 10000Mb 0ms DropTail
            $ns queue-limit $a $b 1000000
            $ns queue-limit $b $a 1000000
        }
    }
    set tcp($i) [new Agent/TCP/Sack1]
    $tcp($i) set packetSize_ 1500
    $tcp($i) set window_ 1000000
    $tcp($i) set windowInit_ 10
    $tcp($i) set maxcwnd_ 1000000
    set sink($i) [new Agent/TCPSink/Sack1/DelAck]
    $sink($i) set packetSize_ 52
    $ns attach-agent $from $tcp($i)
    $ns attach-agent $to $sink($i)
    $ns connect $tcp($i) $sink($i)
    set ftp($i) [new Application/FTP]
    $ftp($i) attach-agent $tcp($i)
    $ns at [expr {0.1 * $seconds * $i / max($flows - 1, 1)}] "$ftp($i) start"
}
proc finish {} {
    global tcp flows
    for {set i 0} {$i < $flows} {incr i} {
        # Segments acknowledged, and retransmitted.
        puts "[expr {[$tcp($i) set ack_] + 1}] [$tcp($i) set nrexmitpack_]"
    }
    exit 0
}
$ns at $seconds finish
$ns run
