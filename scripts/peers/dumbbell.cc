// The dumbbell on ns-3: dumbbell RATE_MBIT RTT_MS BUFFER FLOWS SECONDS HOPS
// Standard TCP with SACK and delayed acknowledgments; the flows start evenly over the first tenth of the time.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

static std::vector<uint64_t> retransmitted;

// A segment that begins below the highest one sent is a retransmission.
static void Sent(uint32_t flow, SequenceNumber32* highest, Ptr<const Packet> packet, const TcpHeader& header,
                 Ptr<const TcpSocketBase>) {
    if (packet->GetSize() == 0) return;
    if (header.GetSequenceNumber() < *highest) {
        retransmitted[flow]++;
    } else {
        *highest = header.GetSequenceNumber() + packet->GetSize();
    }
}

int main(int, char* argv[]) {
    const double rate = atof(argv[1]), rtt = atof(argv[2]);
    const std::string buffer = argv[3];
    const uint32_t flows = atoi(argv[4]);
    const double seconds = atof(argv[5]);
    const int hops = atoi(argv[6]);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpLinuxReno"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 30));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 30));

    NodeContainer routers;
    routers.Create(2);
    PointToPointHelper bottleneck;
    bottleneck.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate * 1e6)));
    bottleneck.SetDeviceAttribute("Mtu", UintegerValue(1500));
    bottleneck.SetChannelAttribute("Delay", TimeValue(MilliSeconds(rtt / 2)));
    bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(buffer + "p"));
    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000000p"));

    InternetStackHelper stack;
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    stack.Install(routers);
    auto middle = addresses.Assign(bottleneck.Install(routers));
    std::vector<Ptr<PacketSink>> sinks;
    retransmitted.resize(flows);
    for (uint32_t i = 0; i < flows; i++) {
        Ptr<Node> from = routers.Get(0), to = routers.Get(1);
        Ipv4Address target = middle.GetAddress(1);
        if (hops == 3) {
            NodeContainer ends;
            ends.Create(2);
            stack.Install(ends);
            addresses.NewNetwork();
            addresses.Assign(access.Install(ends.Get(0), routers.Get(0)));
            addresses.NewNetwork();
            target = addresses.Assign(access.Install(ends.Get(1), routers.Get(1))).GetAddress(0);
            from = ends.Get(0);
            to = ends.Get(1);
        }
        const uint16_t port = 5000 + i;
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        auto receiver = sink.Install(to);
        receiver.Start(Seconds(0));
        sinks.push_back(receiver.Get(0)->GetObject<PacketSink>());
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(target, port));
        source.SetAttribute("SendSize", UintegerValue(1448));
        auto sender = source.Install(from);
        const double start = 0.1 * seconds * i / std::max(flows - 1, 1U);
        sender.Start(Seconds(start));
        Simulator::Schedule(Seconds(start + 1e-6), [sender, i] {
            auto* highest = new SequenceNumber32(0);
            sender.Get(0)->GetObject<BulkSendApplication>()->GetSocket()->TraceConnectWithoutContext(
                "Tx", MakeBoundCallback(&Sent, i, highest));
        });
    }
    if (hops == 3) Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    for (uint32_t i = 0; i < flows; i++) {
        std::cout << sinks[i]->GetTotalRx() / 1448 << " " << retransmitted[i] << "\n";
    }
    Simulator::Destroy();
}
