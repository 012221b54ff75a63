// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What goes wrong for people who move from one tool to another by hand, a test for each.

use ibmgrd_import::{Format, Options, Outcome, Source, import};

use crate::{many, note, one, only, settings};

const ADDRESS: &str = "80:00:02:08:fe:80:00:00:00:00:00:00:24:8a:07:03:00:4b:92:18";

fn ifcfg(text: &str) -> String {
    format!("TYPE=InfiniBand\n{text}")
}

#[test]
fn pkey_id_gets_the_full_member_bit_in_key_and_name() {
    let text = ifcfg("DEVICE=ib0.8005\nPKEY=yes\nPHYSDEV=ib0\nPKEY_ID=5\n");
    let import = one(Format::Ifcfg, "ifcfg-x", &text);
    let child = &only(&import).children[0];
    assert_eq!(child.pkey.raw(), 0x8005);
    assert_eq!(
        child.name.as_ref().map(|name| name.as_str()),
        Some("ib0.8005")
    );
    assert_eq!(note(&import, "PKEY_ID").outcome, Outcome::Carried);
}

#[test]
fn pkey_id_nm_gets_it_in_the_key_and_not_in_the_name() {
    let text = ifcfg("DEVICE=ib0.0005\nPKEY=yes\nPHYSDEV=ib0\nPKEY_ID_NM=5\nPKEY_ID=6\n");
    let import = one(Format::Ifcfg, "ifcfg-x", &text);
    let child = &only(&import).children[0];
    assert_eq!(child.pkey.raw(), 0x8005);
    assert_eq!(
        child.name.as_ref().map(|name| name.as_str()),
        Some("ib0.0005")
    );
    assert_eq!(note(&import, "PKEY_ID_NM").outcome, Outcome::Changed);
    assert_eq!(note(&import, "PKEY_ID").outcome, Outcome::NotCarried);
}

#[test]
fn a_keyfiles_p_key_has_no_full_member_bit_in_the_name() {
    let text = "[connection]\ntype=infiniband\n[infiniband]\np-key=10\nparent=ib0\n\
                transport-mode=datagram\n";
    let import = one(Format::NmKeyfile, "a.nmconnection", text);
    let child = &only(&import).children[0];
    assert_eq!(child.pkey.raw(), 0x800a);
    assert_eq!(
        child.name.as_ref().map(|name| name.as_str()),
        Some("ib0.000a")
    );
    let why = note(&import, "[infiniband] p-key")
        .why
        .as_deref()
        .unwrap_or_default();
    assert!(why.contains("0x8000"), "{why}");
}

#[test]
fn a_pkey_without_its_0x_is_hexadecimal_for_wicked_and_decimal_for_red_hat() {
    let suse = "IPOIB=yes\nIPOIB_DEVICE=ib0\nIPOIB_PKEY=8001\n";
    let import = one(Format::Ifcfg, "ifcfg-storage", suse);
    assert_eq!(only(&import).children[0].pkey.raw(), 0x8001);
    let red_hat = ifcfg("DEVICE=ib0.9f41\nPKEY=yes\nPHYSDEV=ib0\nPKEY_ID=8001\n");
    let import = one(Format::Ifcfg, "ifcfg-x", &red_hat);
    assert_eq!(only(&import).children[0].pkey.raw(), 0x9f41);
}

#[test]
fn wickeds_allowed_is_the_kernels_ignore() {
    for (word, wanted) in [
        ("allowed", "umcast = ignore"),
        ("disallowed", "umcast = honour"),
    ] {
        let text = format!("IPOIB=yes\nIPOIB_UMCAST='{word}'\n");
        let import = one(Format::Ifcfg, "ifcfg-ib0", &text);
        assert_eq!(settings(only(&import)), [wanted]);
        let text = format!(
            "<interface><name>ib0</name><infiniband><multicast>{word}</multicast></infiniband>\
             </interface>"
        );
        let import = one(Format::Wicked, "a.xml", &text);
        assert_eq!(settings(only(&import)), [wanted]);
    }
    let text = "[Match]\nName=ib0\n[IPoIB]\nIgnoreUserspaceMulticastGroups=yes\n";
    let import = one(Format::Networkd, "a.network", text);
    assert_eq!(settings(only(&import)), ["umcast = ignore"]);
}

#[test]
fn of_a_twenty_byte_address_the_last_eight_are_kept() {
    let keyfile = format!(
        "[connection]\ntype=infiniband\n[infiniband]\nmac-address={ADDRESS}\ntransport-mode=datagram\n"
    );
    let netplan = format!(
        "network:\n  ethernets:\n    a:\n      match: {{macaddress: '{ADDRESS}'}}\n      \
         infiniband-mode: datagram\n"
    );
    let link = format!("[Match]\nMACAddress={ADDRESS}\n[Link]\nMTUBytes=2044\n");
    let imports = [
        one(
            Format::Ifcfg,
            "ifcfg-x",
            &ifcfg(&format!("HWADDR={ADDRESS}\n")),
        ),
        one(Format::NmKeyfile, "a.nmconnection", &keyfile),
        one(Format::Netplan, "a.yaml", &netplan),
        one(Format::Networkd, "a.link", &link),
    ];
    for import in imports {
        let matches = &only(&import).matches;
        let guids: Vec<String> = matches.guid.iter().map(ToString::to_string).collect();
        assert_eq!(guids, ["248a:0703:004b:9218"]);
        let changed = import
            .notes
            .iter()
            .find(|note| note.outcome == Outcome::Changed);
        assert!(
            changed.is_some_and(|note| note.why.as_ref().is_some_and(|why| why.contains("QPN")))
        );
    }
}

#[test]
fn an_ethernet_address_never_becomes_a_guid() {
    let text = ifcfg("DEVICE=ib0\nHWADDR=00:11:22:33:44:55\n");
    let import = one(Format::Ifcfg, "ifcfg-x", &text);
    assert!(only(&import).matches.guid.is_empty());
    assert_eq!(note(&import, "HWADDR").outcome, Outcome::NotCarried);
}

#[test]
fn connected_mode_is_carried_with_a_word_on_devices_that_lack_it() {
    let text = ifcfg("DEVICE=ib0\nCONNECTED_MODE=yes\n");
    let import = one(Format::Ifcfg, "ifcfg-x", &text);
    let note = note(&import, "CONNECTED_MODE");
    assert_eq!(note.outcome, Outcome::Carried);
    assert!(
        note.why
            .as_deref()
            .unwrap_or_default()
            .contains("ConnectX-4")
    );
}

#[test]
fn an_mtu_of_connected_mode_does_not_come_along_with_datagram_mode() {
    let keyfile = "[connection]\ntype=infiniband\ninterface-name=ib0\n[infiniband]\n\
                   transport-mode=datagram\nmtu=65520\n";
    let netplan = "network:\n  ethernets:\n    ib0:\n      infiniband-mode: datagram\n      \
                   mtu: 65520\n";
    let imports = [
        (
            one(Format::NmKeyfile, "a.nmconnection", keyfile),
            "[infiniband] mtu",
        ),
        (one(Format::Netplan, "a.yaml", netplan), "mtu"),
    ];
    for (import, key) in imports {
        assert_eq!(settings(only(&import)), ["mode = datagram"]);
        assert_eq!(note(&import, key).outcome, Outcome::NotCarried);
    }
}

#[test]
fn the_largest_datagram_mtu_is_carried() {
    let keyfile = |mtu| {
        format!(
            "[connection]\ntype=infiniband\ninterface-name=ib0\n[infiniband]\n\
             transport-mode=datagram\nmtu={mtu}\n"
        )
    };
    let import = one(Format::NmKeyfile, "a.nmconnection", &keyfile(4092));
    assert_eq!(settings(only(&import)), ["mode = datagram", "mtu = 4092"]);
    let import = one(Format::NmKeyfile, "a.nmconnection", &keyfile(4093));
    assert_eq!(settings(only(&import)), ["mode = datagram"]);
}

#[test]
fn openib_conf_is_parsed_and_never_sourced() {
    let text = "SET_IPOIB_CM=$(echo yes)\nIPOIB_MTU=`echo 65520`\nNODE_DESC=$(hostname -s)\n";
    let import = one(Format::Openib, "openib.conf", text);
    assert!(import.desired.rules.is_empty());
    for note in &import.notes {
        assert_eq!(note.outcome, Outcome::NotCarried);
        assert!(
            note.why
                .as_deref()
                .unwrap_or_default()
                .contains("nothing is evaluated")
        );
    }
}

#[test]
fn ifcfg_is_parsed_and_never_sourced() {
    let text = ifcfg("DEVICE=ib0\nMTU=${X:-2044}\n. /etc/evil\nmodprobe evil\n");
    let import = one(Format::Ifcfg, "ifcfg-x", &text);
    assert_eq!(settings(only(&import)), ["mode = datagram"]);
    assert_eq!(note(&import, "modprobe evil").outcome, Outcome::NotCarried);
}

#[test]
fn ethtools_options_may_name_the_interface_by_a_variable() {
    let text = ifcfg("DEVICE=ib0\nETHTOOL_OPTS=\"-K $DEVICE gro off; -C ${OTHER} rx-usecs 5\"\n");
    let import = one(Format::Ifcfg, "ifcfg-x", &text);
    // One expansion that is not its own makes the whole value one that takes a shell.
    assert_eq!(note(&import, "ETHTOOL_OPTS").outcome, Outcome::NotCarried);
    let text = ifcfg("DEVICE=ib0\nETHTOOL_OPTS=\"-K $DEVICE gro off\"\n");
    let import = one(Format::Ifcfg, "ifcfg-x", &text);
    assert_eq!(
        settings(only(&import)),
        ["feature.rx-gro = off", "mode = datagram"]
    );
}

#[test]
fn the_last_of_two_settings_of_one_key_counts() {
    let text = ifcfg("DEVICE=ib0\nMTU=2044\nMTU=2000\n");
    let import = one(Format::Ifcfg, "ifcfg-x", &text);
    assert_eq!(settings(only(&import)), ["mode = datagram", "mtu = 2000"]);
    let first = note(&import, "MTU");
    assert_eq!((first.place.line, first.outcome), (3, Outcome::NotCarried));
}

#[test]
fn a_backup_of_a_file_is_not_one() {
    for name in [
        "ifcfg-ib0~",
        "ifcfg-ib0.bak",
        "ifcfg-ib0.rpmsave",
        ".ifcfg-ib0",
    ] {
        assert!(!Format::Ifcfg.takes(name), "{name}");
    }
    for name in ["ifcfg-ib0", "ifcfg-ib0.8001", "ifcfg-Storage_A"] {
        assert!(Format::Ifcfg.takes(name), "{name}");
    }
}

#[test]
fn systemd_takes_the_first_file_that_matches() {
    let import = many(
        Format::Networkd,
        &[
            (
                "/run/systemd/network/20-b.network",
                "[Match]\nName=ib0\n[Link]\nMTUBytes=2000\n",
            ),
            (
                "/etc/systemd/network/10-a.network",
                "[Match]\nName=ib0\n[Link]\nMTUBytes=2044\n",
            ),
        ],
    );
    assert_eq!(settings(only(&import)), ["mtu = 2044"]);
}

#[test]
fn a_condition_that_rules_lack_keeps_the_whole_file_out() {
    let text = "[Match]\nName=ib0\nHost=node7\n[Link]\nMTUBytes=2044\n";
    let import = one(Format::Networkd, "a.network", text);
    assert!(import.desired.rules.is_empty());
    assert_eq!(
        note(&import, "[Link] MTUBytes").outcome,
        Outcome::NotCarried
    );
    assert!(import.notes.iter().all(|note| note.into.is_none()));
}

#[test]
fn a_device_list_of_tuned_without_names_is_not_for_ethernet() {
    let import = one(Format::Tuned, "tuned.conf", "[net]\ntxqueuelen=100\n");
    let kinds: Vec<_> = only(&import)
        .matches
        .kind
        .iter()
        .map(ibmgr_api::Glob::as_str)
        .collect();
    assert_eq!(kinds, ["ipoib"]);
}

#[test]
fn a_secret_beside_an_interface_stays_out_of_the_report() {
    let text = "[connection]\ntype=infiniband\ninterface-name=ib0\n[802-1x]\n\
                password=hunter2\n[infiniband]\ntransport-mode=datagram\n";
    let import = one(Format::NmKeyfile, "a.nmconnection", text);
    let shown = format!("{:?}", import.notes);
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_child_that_two_files_describe_is_one_child() {
    let import = many(
        Format::Networkd,
        &[
            (
                "10-p.netdev",
                "[NetDev]\nName=ib0.8001\nKind=ipoib\n[IPoIB]\nPartitionKey=0x8001\n",
            ),
            (
                "20-ib0.network",
                "[Match]\nName=ib0\n[Network]\nIPoIB=ib0.8001\n",
            ),
            (
                "30-p.network",
                "[Match]\nName=ib0.8001\n[Link]\nMTUBytes=2000\n",
            ),
        ],
    );
    let rule = only(&import);
    assert_eq!(rule.children.len(), 1);
    assert_eq!(rule.children[0].settings.len(), 1);
}

#[test]
fn an_ethernet_profile_without_a_name_is_not_for_ipoib() {
    let text = "[connection]\ntype=ethernet\n[ethernet]\nmtu=9000\n\
                mac-address=00:11:22:33:44:55\n";
    let source = Source::new("a.nmconnection", text.as_bytes().to_vec()).expect("UTF-8");
    let options = Options { all_kinds: true };
    let import = import(Format::NmKeyfile, &[source], options).expect("a keyfile");
    assert!(import.desired.rules.is_empty(), "{:?}", import.desired);
    assert_eq!(note(&import, "[ethernet] mtu").outcome, Outcome::NotCarried);
}

#[test]
fn an_ethernet_interface_gets_no_ipoib_mode() {
    let text = "TYPE=Ethernet\nDEVICE=eno1\nMTU=9000\n";
    let source = Source::new("ifcfg-eno1", text.as_bytes().to_vec()).expect("UTF-8");
    let options = Options { all_kinds: true };
    let import = import(Format::Ifcfg, &[source], options).expect("an ifcfg file");
    assert_eq!(settings(only(&import)), ["mtu = 9000"]);
}

#[test]
fn a_device_name_that_does_not_fit_the_pkey_is_told_of_once() {
    let text = ifcfg("DEVICE=ib0.00c1\nPKEY=yes\nPHYSDEV=ib0\nPKEY_ID=0x00c1\n");
    let import = one(Format::Ifcfg, "ifcfg-x", &text);
    let notes: Vec<_> = import
        .notes
        .iter()
        .filter(|note| note.key == "DEVICE")
        .collect();
    let [note] = notes[..] else {
        panic!("{notes:?}");
    };
    assert_eq!(note.outcome, Outcome::Changed);
    assert_eq!(note.into.as_deref(), Some("name = ib0.80c1"));
}
