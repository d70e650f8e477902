# What every scenario on ns-2 uses: `script.py` writes the lines that follow. Samples go into the file `samples`.
# Packets carry only the headers that TCP needs: with all headers of ns-2 they no longer fit the processor's caches.
remove-all-packet-headers
add-packet-header IP TCP Flags QS
set ns [new Simulator]
set out [open samples w]
proc set_all {object values} {
    foreach {name value} $values {$object set $name $value}
}
proc monitor {link} {
    global monitor lost integral
    set monitor [new QueueMonitor]
    $link attach-monitors [new SnoopQueue/In] [new SnoopQueue/Out] [new SnoopQueue/Drop] $monitor
    set integral [new Integrator]
    $monitor set-pkts-integrator $integral
    set lost [new QueueMonitor]
}
proc lose {link probability rate} {
    global ns lost
    set model [new ErrorModel]
    $model unit pkt
    $model set rate_ $probability
    $model set bandwidth_ $rate
    $model ranvar [new RandomVariable/Uniform]
    $link insert-linkloss $model
    set snoop [new SnoopQueue/Drop]
    $snoop set-monitor $lost
    $snoop target [$ns set nullAgent_]
    $model drop-target $snoop
}
proc hosts {rate delay} {
    global ns from to left right
    set from [$ns node]
    set to [$ns node]
    foreach {a b after} [list $from $left $delay $right $to 0] {
        $ns duplex-link $a $b $rate $after DropTail
        $ns queue-limit $a $b 1000000
        $ns queue-limit $b $a 1000000
    }
}
proc until_cut {number values} {
    global ns tcp
    if {[$tcp($number) set ncwndcuts_] > 0} {
        set_all $tcp($number) $values
    } else {
        $ns at [expr {[$ns now] + 0.01}] [list until_cut $number $values]
    }
}
proc rows {kind} {
    global ns tcp monitor lost integral out
    set now [$ns now]
    foreach number [lsort -integer [array names tcp]] {
        set row [list f $kind $now $number]
        foreach name {cwnd_ ssthresh_ ack_ ndatapack_ nrexmitpack_ nrexmit_ srtt_} {
            lappend row [$tcp($number) set $name]
        }
        puts $out $row
    }
    $integral newpoint $now [$monitor set pkts_]
    set row [list q $kind $now]
    foreach name {pkts_ size_ parrivals_ pdrops_} {lappend row [$monitor set $name]}
    lappend row [$lost set pdrops_] [$monitor set pdepartures_] [$integral set sum_]
    puts $out $row
}
proc sample {kind interval number} {
    global ns
    $ns at [expr {$number * $interval}] "rows $kind; sample $kind $interval [expr {$number + 1}]"
}
proc finish {} {
    global out
    close $out
    exit 0
}
