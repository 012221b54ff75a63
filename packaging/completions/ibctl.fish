# SPDX-License-Identifier: Apache-2.0 OR MIT
# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_ibctl_global_optspecs
    string join \n o/output= h/help V/version
end

function __fish_ibctl_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_ibctl_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_ibctl_using_subcommand
    set -l cmd (__fish_ibctl_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c ibctl -n "__fish_ibctl_needs_command" -s o -l output -d 'Form of the output: table (the default) or json' -r -f -a "table\t'Columns for people'
json\t'The documented JSON form'"
complete -c ibctl -n "__fish_ibctl_needs_command" -s h -l help -d 'Print help'
complete -c ibctl -n "__fish_ibctl_needs_command" -s V -l version -d 'Print version'
complete -c ibctl -n "__fish_ibctl_needs_command" -f -a "show" -d 'List all interfaces, or show one with every knob'
complete -c ibctl -n "__fish_ibctl_needs_command" -f -a "get" -d 'Print the present values of knobs'
complete -c ibctl -n "__fish_ibctl_needs_command" -f -a "set" -d 'Change knobs: all of them, verified by reading back, or none'
complete -c ibctl -n "__fish_ibctl_needs_command" -f -a "check" -d 'Tell what is wrong with configuration files, without the kernel'
complete -c ibctl -n "__fish_ibctl_needs_command" -f -a "plan" -d 'Print the steps to what files declare, change nothing'
complete -c ibctl -n "__fish_ibctl_needs_command" -f -a "diff" -d 'Print the steps to what files declare, change nothing'
complete -c ibctl -n "__fish_ibctl_needs_command" -f -a "export" -d 'Print the present state as a file that plans to nothing'
complete -c ibctl -n "__fish_ibctl_needs_command" -f -a "import" -d 'Turn other tools\' configuration into a file of rules, and report'
complete -c ibctl -n "__fish_ibctl_needs_command" -f -a "apply" -d 'Bring interfaces to what files declare: all of it, or nothing'
complete -c ibctl -n "__fish_ibctl_needs_command" -f -a "confirm" -d 'Keep what \'apply --confirm-within\' changed'
complete -c ibctl -n "__fish_ibctl_needs_command" -f -a "rollback" -d 'Take back a change that waits to be confirmed, or was interrupted'
complete -c ibctl -n "__fish_ibctl_needs_command" -f -a "status" -d 'Tell whether a change is pending, how the last one went, what drifts'
complete -c ibctl -n "__fish_ibctl_needs_command" -f -a "watch" -d 'Print what happens, as the daemon sees it, until it ends'
complete -c ibctl -n "__fish_ibctl_needs_command" -f -a "await-confirmation" -d 'Waits for a change to be confirmed, and takes it back when it was not'
complete -c ibctl -n "__fish_ibctl_needs_command" -f -a "driver" -d 'Tell which IPoIB driver owns each port and why, or choose another'
complete -c ibctl -n "__fish_ibctl_needs_command" -f -a "explain" -d 'Tell what a knob is, which values it takes and what a change does'
complete -c ibctl -n "__fish_ibctl_using_subcommand show" -s o -l output -d 'Form of the output: table (the default) or json' -r -f -a "table\t'Columns for people'
json\t'The documented JSON form'"
complete -c ibctl -n "__fish_ibctl_using_subcommand show" -s h -l help -d 'Print help'
complete -c ibctl -n "__fish_ibctl_using_subcommand get" -l via -d 'Read by this only: rtnetlink, ethtool, netdev, sysfs' -r -f -a "rtnetlink\t''
ethtool\t''
netdev\t''
sysfs\t''"
complete -c ibctl -n "__fish_ibctl_using_subcommand get" -s o -l output -d 'Form of the output: table (the default) or json' -r -f -a "table\t'Columns for people'
json\t'The documented JSON form'"
complete -c ibctl -n "__fish_ibctl_using_subcommand get" -s h -l help -d 'Print help'
complete -c ibctl -n "__fish_ibctl_using_subcommand set" -l via -d 'Use this only: rtnetlink, ethtool, netdev, sysfs' -r -f -a "rtnetlink\t''
ethtool\t''
netdev\t''
sysfs\t''"
complete -c ibctl -n "__fish_ibctl_using_subcommand set" -l save -d 'Declare them, too, in /etc/ibmgr/conf.d/90-set.toml' -r -F
complete -c ibctl -n "__fish_ibctl_using_subcommand set" -l socket -d 'Socket of the daemon' -r -F
complete -c ibctl -n "__fish_ibctl_using_subcommand set" -s o -l output -d 'Form of the output: table (the default) or json' -r -f -a "table\t'Columns for people'
json\t'The documented JSON form'"
complete -c ibctl -n "__fish_ibctl_using_subcommand set" -l dry-run -d 'Print the steps in their order, change nothing'
complete -c ibctl -n "__fish_ibctl_using_subcommand set" -l direct -d 'Do it without the daemon'
complete -c ibctl -n "__fish_ibctl_using_subcommand set" -s h -l help -d 'Print help'
complete -c ibctl -n "__fish_ibctl_using_subcommand check" -s o -l output -d 'Form of the output: table (the default) or json' -r -f -a "table\t'Columns for people'
json\t'The documented JSON form'"
complete -c ibctl -n "__fish_ibctl_using_subcommand check" -s h -l help -d 'Print help'
complete -c ibctl -n "__fish_ibctl_using_subcommand plan" -l socket -d 'Socket of the daemon' -r -F
complete -c ibctl -n "__fish_ibctl_using_subcommand plan" -s o -l output -d 'Form of the output: table (the default) or json' -r -f -a "table\t'Columns for people'
json\t'The documented JSON form'"
complete -c ibctl -n "__fish_ibctl_using_subcommand plan" -l direct -d 'Do it without the daemon'
complete -c ibctl -n "__fish_ibctl_using_subcommand plan" -s h -l help -d 'Print help'
complete -c ibctl -n "__fish_ibctl_using_subcommand diff" -l socket -d 'Socket of the daemon' -r -F
complete -c ibctl -n "__fish_ibctl_using_subcommand diff" -s o -l output -d 'Form of the output: table (the default) or json' -r -f -a "table\t'Columns for people'
json\t'The documented JSON form'"
complete -c ibctl -n "__fish_ibctl_using_subcommand diff" -l direct -d 'Do it without the daemon'
complete -c ibctl -n "__fish_ibctl_using_subcommand diff" -s h -l help -d 'Print help'
complete -c ibctl -n "__fish_ibctl_using_subcommand export" -s o -l output -d 'Form of the output: table (the default) or json' -r -f -a "table\t'Columns for people'
json\t'The documented JSON form'"
complete -c ibctl -n "__fish_ibctl_using_subcommand export" -s h -l help -d 'Print help'
complete -c ibctl -n "__fish_ibctl_using_subcommand import" -l from -d 'ifcfg, nm-keyfile, nmstate, netplan, networkd, wicked, openib, tuned' -r -f -a "ifcfg\t''
nm-keyfile\t''
nmstate\t''
netplan\t''
networkd\t''
wicked\t''
openib\t''
tuned\t''"
complete -c ibctl -n "__fish_ibctl_using_subcommand import" -l to -d 'Write the rules here; a file that is there stays' -r -F
complete -c ibctl -n "__fish_ibctl_using_subcommand import" -s o -l output -d 'Form of the output: table (the default) or json' -r -f -a "table\t'Columns for people'
json\t'The documented JSON form'"
complete -c ibctl -n "__fish_ibctl_using_subcommand import" -l force -d 'Replace the file that --to names'
complete -c ibctl -n "__fish_ibctl_using_subcommand import" -l all-kinds -d 'Take interfaces of every kind, not only InfiniBand'
complete -c ibctl -n "__fish_ibctl_using_subcommand import" -s h -l help -d 'Print help'
complete -c ibctl -n "__fish_ibctl_using_subcommand apply" -l confirm-within -d 'Put all back unless confirmed within this time' -r
complete -c ibctl -n "__fish_ibctl_using_subcommand apply" -l socket -d 'Socket of the daemon' -r -F
complete -c ibctl -n "__fish_ibctl_using_subcommand apply" -s o -l output -d 'Form of the output: table (the default) or json' -r -f -a "table\t'Columns for people'
json\t'The documented JSON form'"
complete -c ibctl -n "__fish_ibctl_using_subcommand apply" -l dry-run -d 'Print the steps in their order, change nothing'
complete -c ibctl -n "__fish_ibctl_using_subcommand apply" -l direct -d 'Do it without the daemon'
complete -c ibctl -n "__fish_ibctl_using_subcommand apply" -s h -l help -d 'Print help'
complete -c ibctl -n "__fish_ibctl_using_subcommand confirm" -l socket -d 'Socket of the daemon' -r -F
complete -c ibctl -n "__fish_ibctl_using_subcommand confirm" -s o -l output -d 'Form of the output: table (the default) or json' -r -f -a "table\t'Columns for people'
json\t'The documented JSON form'"
complete -c ibctl -n "__fish_ibctl_using_subcommand confirm" -l direct -d 'Do it without the daemon'
complete -c ibctl -n "__fish_ibctl_using_subcommand confirm" -s h -l help -d 'Print help'
complete -c ibctl -n "__fish_ibctl_using_subcommand rollback" -l socket -d 'Socket of the daemon' -r -F
complete -c ibctl -n "__fish_ibctl_using_subcommand rollback" -s o -l output -d 'Form of the output: table (the default) or json' -r -f -a "table\t'Columns for people'
json\t'The documented JSON form'"
complete -c ibctl -n "__fish_ibctl_using_subcommand rollback" -l direct -d 'Do it without the daemon'
complete -c ibctl -n "__fish_ibctl_using_subcommand rollback" -s h -l help -d 'Print help'
complete -c ibctl -n "__fish_ibctl_using_subcommand status" -l socket -d 'Socket of the daemon' -r -F
complete -c ibctl -n "__fish_ibctl_using_subcommand status" -s o -l output -d 'Form of the output: table (the default) or json' -r -f -a "table\t'Columns for people'
json\t'The documented JSON form'"
complete -c ibctl -n "__fish_ibctl_using_subcommand status" -l direct -d 'Do it without the daemon'
complete -c ibctl -n "__fish_ibctl_using_subcommand status" -s h -l help -d 'Print help'
complete -c ibctl -n "__fish_ibctl_using_subcommand watch" -l socket -d 'Socket of the daemon' -r -F
complete -c ibctl -n "__fish_ibctl_using_subcommand watch" -s o -l output -d 'Form of the output: table (the default) or json' -r -f -a "table\t'Columns for people'
json\t'The documented JSON form'"
complete -c ibctl -n "__fish_ibctl_using_subcommand watch" -s h -l help -d 'Print help'
complete -c ibctl -n "__fish_ibctl_using_subcommand await-confirmation" -s o -l output -d 'Form of the output: table (the default) or json' -r -f -a "table\t'Columns for people'
json\t'The documented JSON form'"
complete -c ibctl -n "__fish_ibctl_using_subcommand await-confirmation" -s h -l help -d 'Print help'
complete -c ibctl -n "__fish_ibctl_using_subcommand driver; and not __fish_seen_subcommand_from status use" -s o -l output -d 'Form of the output: table (the default) or json' -r -f -a "table\t'Columns for people'
json\t'The documented JSON form'"
complete -c ibctl -n "__fish_ibctl_using_subcommand driver; and not __fish_seen_subcommand_from status use" -s h -l help -d 'Print help'
complete -c ibctl -n "__fish_ibctl_using_subcommand driver; and not __fish_seen_subcommand_from status use" -f -a "status" -d 'List the InfiniBand ports with their drivers, and what is chosen'
complete -c ibctl -n "__fish_ibctl_using_subcommand driver; and not __fish_seen_subcommand_from status use" -f -a "use" -d 'Choose the driver for the next boot, or with --now at once'
complete -c ibctl -n "__fish_ibctl_using_subcommand driver; and __fish_seen_subcommand_from status" -s o -l output -d 'Form of the output: table (the default) or json' -r -f -a "table\t'Columns for people'
json\t'The documented JSON form'"
complete -c ibctl -n "__fish_ibctl_using_subcommand driver; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c ibctl -n "__fish_ibctl_using_subcommand driver; and __fish_seen_subcommand_from use" -s o -l output -d 'Form of the output: table (the default) or json' -r -f -a "table\t'Columns for people'
json\t'The documented JSON form'"
complete -c ibctl -n "__fish_ibctl_using_subcommand driver; and __fish_seen_subcommand_from use" -l now -d 'Switch at once: interfaces go away and come anew'
complete -c ibctl -n "__fish_ibctl_using_subcommand driver; and __fish_seen_subcommand_from use" -l dry-run -d 'Print the steps in their order, change nothing'
complete -c ibctl -n "__fish_ibctl_using_subcommand driver; and __fish_seen_subcommand_from use" -s h -l help -d 'Print help'
complete -c ibctl -n "__fish_ibctl_using_subcommand explain" -s o -l output -d 'Form of the output: table (the default) or json' -r -f -a "table\t'Columns for people'
json\t'The documented JSON form'"
complete -c ibctl -n "__fish_ibctl_using_subcommand explain" -s h -l help -d 'Print help'
complete -c ibctl -n "__fish_ibctl_using_subcommand show" -f -a "(command ls /sys/class/net)"
complete -c ibctl -n "__fish_ibctl_using_subcommand get" -f -a "(command ls /sys/class/net)"
complete -c ibctl -n "__fish_ibctl_using_subcommand get" -f -a "state mtu txqueuelen alias gso-max-size gro-max-size mode umcast gro-flush-timeout napi-defer-hard-irqs irq-suspend-timeout napi-threaded rx-usecs rx-frames rx-usecs-irq rx-frames-irq tx-usecs tx-frames tx-usecs-irq tx-frames-irq stats-block-usecs adaptive-rx adaptive-tx pkt-rate-low rx-usecs-low rx-frames-low tx-usecs-low tx-frames-low pkt-rate-high rx-usecs-high rx-frames-high tx-usecs-high tx-frames-high sample-interval ring.rx ring.rx-mini ring.rx-jumbo ring.tx channels.rx channels.tx channels.other channels.combined batching batch-limit cm-copybreak"
complete -c ibctl -n "__fish_ibctl_using_subcommand set" -f -a "(command ls /sys/class/net)"
complete -c ibctl -n "__fish_ibctl_using_subcommand set" -f -a "state=down state=up mtu= txqueuelen= alias= gso-max-size= gro-max-size= mode=datagram mode=connected umcast=honour umcast=ignore gro-flush-timeout= napi-defer-hard-irqs= irq-suspend-timeout= napi-threaded=off napi-threaded=on napi-threaded=busy-poll rx-usecs= rx-frames= rx-usecs-irq= rx-frames-irq= tx-usecs= tx-frames= tx-usecs-irq= tx-frames-irq= stats-block-usecs= adaptive-rx=off adaptive-rx=on adaptive-tx=off adaptive-tx=on pkt-rate-low= rx-usecs-low= rx-frames-low= tx-usecs-low= tx-frames-low= pkt-rate-high= rx-usecs-high= rx-frames-high= tx-usecs-high= tx-frames-high= sample-interval= ring.rx= ring.rx-mini= ring.rx-jumbo= ring.tx= channels.rx= channels.tx= channels.other= channels.combined= batching=off batching=on batching=adaptive batch-limit= cm-copybreak="
complete -c ibctl -n "__fish_ibctl_using_subcommand export" -f -a "(command ls /sys/class/net)"
complete -c ibctl -n "__fish_ibctl_using_subcommand explain" -f -a "state mtu txqueuelen alias gso-max-size gro-max-size mode umcast gro-flush-timeout napi-defer-hard-irqs irq-suspend-timeout napi-threaded rx-usecs rx-frames rx-usecs-irq rx-frames-irq tx-usecs tx-frames tx-usecs-irq tx-frames-irq stats-block-usecs adaptive-rx adaptive-tx pkt-rate-low rx-usecs-low rx-frames-low tx-usecs-low tx-frames-low pkt-rate-high rx-usecs-high rx-frames-high tx-usecs-high tx-frames-high sample-interval ring.rx ring.rx-mini ring.rx-jumbo ring.tx channels.rx channels.tx channels.other channels.combined batching batch-limit cm-copybreak"
complete -c ibctl -n "__fish_ibctl_using_subcommand explain" -f -a "(command ls /sys/class/net)"
