//! The hosts of senders.

use serde_json::Value;

use super::network::Network;
use super::topology::Topology;
use crate::file::{FlowFile, Host, Scenario};
use crate::read::typed;

impl Scenario {
    /// The host of a flow's sender: the scenario's, with what the flow changes of it.
    pub(crate) fn host(
        &self,
        file: &FlowFile,
        key: &str,
        topology: &Topology<'_>,
        network: &mut Network,
    ) -> Option<Host> {
        if self.host.is_empty() && file.host.is_empty() {
            return None;
        }
        let mut table = self.host.clone();
        table.extend(file.host.clone());
        let key = if file.host.is_empty() { "host".to_owned() } else { format!("{key}.host") };
        let host: Host = network.note_once(typed(Value::Object(table), &key))?;
        for (name, count) in [("max_backlog", Some(host.max_backlog)), ("txqueuelen", host.txqueuelen)] {
            if count == Some(0) {
                network.wrong(format!("{key}.{name}"), "1 packet or more", "0");
            }
        }
        if host.txqueuelen.is_some() && !topology.has_devices() {
            let expected = "none, or path.access_rate, which gives each sender a device";
            network.wrong(format!("{key}.txqueuelen"), expected, "a limit without a device");
        }
        Some(host)
    }
}
