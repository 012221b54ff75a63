// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keys of systemd.netdev(5), systemd.network(5) and systemd.link(5).

use crate::ethtool::ALL_CHECKSUMS;
use crate::note::Kept;
use crate::rows::{NO_PAUSE, Row, Table, To, row};
use crate::spelling::Form;

pub(in crate::format) const TABLES: [Table; 3] = [
    Table {
        title: "`.netdev`",
        rows: NETDEV,
    },
    Table {
        title: "`.network`",
        rows: NETWORK,
    },
    Table {
        title: "`.link`",
        rows: LINK,
    },
];

const ADDRESSES: To = To::Kept(Kept::Addresses);
const PROFILE: To = To::Kept(Kept::Profile);

const fn feature(key: &'static str, knob: &'static str) -> Row {
    row(key, To::Knob(knob, Form::Switch))
}

const fn usecs(key: &'static str, knob: &'static str) -> Row {
    row(key, To::Knob(knob, Form::Span))
}

const fn count(key: &'static str, knob: &'static str) -> Row {
    row(key, To::Knob(knob, Form::Number))
}

const fn queue(key: &'static str, knob: &'static str) -> Row {
    row(key, To::Knob(knob, Form::NumberOrMax))
}

pub(super) const NETDEV: &[Row] = &[
    row("[NetDev] Name", To::Which("`child.name`")),
    row("[NetDev] Kind", To::Which("tells that it is a child")),
    row("[NetDev] MTUBytes", To::Knob("mtu", Form::Size)),
    row(
        "[NetDev] MACAddress",
        To::Nothing("an IPoIB address can't be set"),
    ),
    row("[NetDev] Description", PROFILE),
    row("[IPoIB] PartitionKey", To::Which("`child.pkey`"))
        .note("the parent is the one whose `.network` names the child"),
    row("[IPoIB] Mode", To::Knob("mode", Form::Mode)),
    row(
        "[IPoIB] IgnoreUserspaceMulticastGroups",
        To::Knob("umcast", Form::IsIgnored),
    ),
    row(
        "[Match] *",
        To::Nothing("a condition of the host: rules have none"),
    ),
];

pub(super) const NETWORK: &[Row] = &[
    row("[Match] Name", To::Which("`match.name`")),
    row("[Match] Type", To::Which("`match.kind`")).note("`infiniband` is `ipoib`"),
    row("[Match] Kind", To::Which("`match.kind`")),
    row("[Match] Driver", To::Which("`match.driver`")),
    row("[Match] Path", To::Which("`match.path`")).note("udev's `pci-…` becomes the PCI address"),
    row("[Match] MACAddress", To::Which("`match.guid`")).note("the last 8 bytes of the 20 alone"),
    row("[Match] PermanentMACAddress", To::Which("`match.guid`"))
        .note("the last 8 bytes of the 20 alone"),
    row(
        "[Match] *",
        To::Nothing("rules have no such condition: the file is not carried"),
    ),
    row("[Link] MTUBytes", To::Knob("mtu", Form::Size)),
    row(
        "[Link] MACAddress",
        To::Nothing("an IPoIB address can't be set"),
    ),
    row("[Link] ARP", To::Nothing("no knob is for it")),
    row("[Link] Multicast", To::Nothing("no knob is for it")),
    row("[Link] AllMulticast", To::Nothing("no knob is for it")),
    row("[Link] Promiscuous", To::Nothing("no knob is for it")),
    row("[Link] *", PROFILE),
    row("[IPoIB] Mode", To::Knob("mode", Form::Mode)),
    row(
        "[IPoIB] IgnoreUserspaceMulticastGroups",
        To::Knob("umcast", Form::IsIgnored),
    ),
    row(
        "[Network] IPoIB",
        To::Which("tells the parent of those children"),
    ),
    row("[Network] Description", PROFILE),
    row(
        "[Network] Bond",
        To::Nothing("bonds, bridges and teams are not ours"),
    ),
    row("[Network] *", ADDRESSES),
    row("[Address] *", ADDRESSES),
    row("[Route] *", ADDRESSES),
    row("[NextHop] *", ADDRESSES),
    row("[Neighbor] *", ADDRESSES),
    row("[RoutingPolicyRule] *", ADDRESSES),
    row("[DHCP*", ADDRESSES),
    row("[IPv6*", ADDRESSES),
    row("[SR-IOV] *", To::Nothing("virtual functions are not ours")),
    row(
        "[QDisc] *",
        To::Nothing("queueing disciplines are not ours"),
    ),
];

pub(super) const LINK: &[Row] = &[
    row("[Match] OriginalName", To::Which("`match.name`"))
        .note("with `Name=` the rule goes by that"),
    row("[Match] Type", To::Which("`match.kind`")).note("`infiniband` is `ipoib`"),
    row("[Match] Kind", To::Which("`match.kind`")),
    row("[Match] Driver", To::Which("`match.driver`")),
    row("[Match] Path", To::Which("`match.path`")).note("udev's `pci-…` becomes the PCI address"),
    row("[Match] MACAddress", To::Which("`match.guid`")).note("the last 8 bytes of the 20 alone"),
    row("[Match] PermanentMACAddress", To::Which("`match.guid`"))
        .note("the last 8 bytes of the 20 alone"),
    row(
        "[Match] *",
        To::Nothing("rules have no such condition: the file is not carried"),
    ),
    row("[Link] Name", To::Which("`match.name`")).note("where no GUID tells the interface"),
    row("[Link] MTUBytes", To::Knob("mtu", Form::Size)),
    row("[Link] Alias", To::Knob("alias", Form::Text)),
    count("[Link] TransmitQueueLength", "txqueuelen"),
    row(
        "[Link] GenericSegmentOffloadMaxBytes",
        To::Knob("gso-max-size", Form::Size),
    ),
    queue("[Link] RxBufferSize", "ring.rx"),
    queue("[Link] RxMiniBufferSize", "ring.rx-mini"),
    queue("[Link] RxJumboBufferSize", "ring.rx-jumbo"),
    queue("[Link] TxBufferSize", "ring.tx"),
    queue("[Link] RxChannels", "channels.rx"),
    queue("[Link] TxChannels", "channels.tx"),
    queue("[Link] OtherChannels", "channels.other"),
    queue("[Link] CombinedChannels", "channels.combined"),
    usecs("[Link] RxCoalesceSec", "rx-usecs"),
    usecs("[Link] RxCoalesceIrqSec", "rx-usecs-irq"),
    usecs("[Link] RxCoalesceLowSec", "rx-usecs-low"),
    usecs("[Link] RxCoalesceHighSec", "rx-usecs-high"),
    usecs("[Link] TxCoalesceSec", "tx-usecs"),
    usecs("[Link] TxCoalesceIrqSec", "tx-usecs-irq"),
    usecs("[Link] TxCoalesceLowSec", "tx-usecs-low"),
    usecs("[Link] TxCoalesceHighSec", "tx-usecs-high"),
    usecs("[Link] StatisticsBlockCoalesceSec", "stats-block-usecs"),
    count("[Link] RxMaxCoalescedFrames", "rx-frames"),
    count("[Link] RxMaxCoalescedIrqFrames", "rx-frames-irq"),
    count("[Link] RxMaxCoalescedLowFrames", "rx-frames-low"),
    count("[Link] RxMaxCoalescedHighFrames", "rx-frames-high"),
    count("[Link] TxMaxCoalescedFrames", "tx-frames"),
    count("[Link] TxMaxCoalescedIrqFrames", "tx-frames-irq"),
    count("[Link] TxMaxCoalescedLowFrames", "tx-frames-low"),
    count("[Link] TxMaxCoalescedHighFrames", "tx-frames-high"),
    count("[Link] CoalescePacketRateLow", "pkt-rate-low"),
    count("[Link] CoalescePacketRateHigh", "pkt-rate-high"),
    row(
        "[Link] CoalescePacketRateSampleIntervalSec",
        To::Knob("sample-interval", Form::Seconds),
    ),
    feature("[Link] UseAdaptiveRxCoalesce", "adaptive-rx"),
    feature("[Link] UseAdaptiveTxCoalesce", "adaptive-tx"),
    feature("[Link] ReceiveChecksumOffload", "feature.rx-checksum"),
    feature("[Link] TransmitChecksumOffload", "feature.tx-checksum-ipv4").changes(ALL_CHECKSUMS),
    feature(
        "[Link] GenericSegmentationOffload",
        "feature.tx-generic-segmentation",
    ),
    feature(
        "[Link] TCPSegmentationOffload",
        "feature.tx-tcp-segmentation",
    ),
    feature(
        "[Link] TCP6SegmentationOffload",
        "feature.tx-tcp6-segmentation",
    ),
    feature("[Link] GenericReceiveOffload", "feature.rx-gro"),
    feature("[Link] GenericReceiveOffloadHardware", "feature.rx-gro-hw"),
    feature("[Link] LargeReceiveOffload", "feature.rx-lro"),
    feature("[Link] NTupleFilter", "feature.rx-ntuple-filter"),
    row(
        "[Link] ReceivePacketSteeringCPUMask",
        To::Nothing("CPU masks of queues are not carried"),
    ),
    row(
        "[Link] GenericSegmentOffloadMaxSegments",
        To::Nothing("no knob is for it"),
    ),
    row(
        "[Link] TransmitQueues",
        To::Nothing("it counts when an interface is made"),
    ),
    row(
        "[Link] ReceiveQueues",
        To::Nothing("it counts when an interface is made"),
    ),
    row("[Link] RxFlowControl", To::Nothing(NO_PAUSE)),
    row("[Link] TxFlowControl", To::Nothing(NO_PAUSE)),
    row("[Link] AutoNegotiationFlowControl", To::Nothing(NO_PAUSE)),
    row(
        "[Link] MACAddress",
        To::Nothing("an IPoIB address can't be set"),
    ),
    row(
        "[Link] MACAddressPolicy",
        To::Nothing("an IPoIB address can't be set"),
    ),
    row(
        "[Link] WakeOnLan*",
        To::Nothing("InfiniBand has no wake-on-LAN"),
    ),
    row(
        "[Link] BitsPerSecond",
        To::Nothing("the subnet manager decides on speed and width"),
    ),
    row("[Link] Duplex", To::Nothing("it is Ethernet's")),
    row("[Link] AutoNegotiation", To::Nothing("it is Ethernet's")),
    row("[Link] Port", To::Nothing("it is Ethernet's")),
    row("[Link] MDI", To::Nothing("it is Ethernet's")),
    row("[Link] Advertise", To::Nothing("it is Ethernet's")),
    row("[Link] ReceiveVLAN*", To::Nothing("VLANs are Ethernet's")),
    row("[Link] TransmitVLAN*", To::Nothing("VLANs are Ethernet's")),
    row("[Link] Description", PROFILE),
    row("[Link] Property", PROFILE),
    row("[Link] UnsetProperty", PROFILE),
    row("[Link] ImportProperty", PROFILE),
    row("[Link] NamePolicy", PROFILE),
    row("[Link] AlternativeName*", PROFILE),
    row("[SR-IOV] *", To::Nothing("virtual functions are not ours")),
];
