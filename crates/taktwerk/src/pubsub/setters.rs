//! Setters common to the builders of publishers, subscribers and Actions: transport and broker connections.

/// Setters of all builders. The parameters name the fields of the driver's options, of the broker options and of the
/// cryptographic library. The builder must have `connection` and `secured`, which change the security settings and the address.
macro_rules! transport_setters {
    (options: $($options:ident).+, mqtt: $($mqtt:ident).+, provider: $($provider:ident).+) => {
        /// The network interface, by name or address. Default: determined by the kernel's routes.
        pub fn interface(self, interface: &str) -> Self {
            self.connection(|connection| connection.network_interface = interface.to_owned())
        }

        /// Message security with the keys of a security group from `keys`: applied to sent messages, and required for received
        /// ones. With a whole configuration, this is the minimum for all groups: stronger modes and configured security groups
        /// stay.
        pub fn security(
            mut self,
            mode: SecurityMode,
            security_group_id: &str,
            keys: impl KeySource + 'static,
        ) -> Self {
            self.$($options).+.keys = Some(Box::new(keys));
            self.secured(mode, security_group_id)
        }

        /// Settings of broker connections.
        #[cfg(feature = "mqtt")]
        pub fn mqtt(mut self, options: taktwerk_net::pubsub::mqtt::MqttOptions) -> Self {
            self.$($mqtt).+ = options;
            self
        }

        /// The cryptographic library. Default: aws-lc.
        pub fn provider(mut self, provider: Arc<dyn PubSubProvider>) -> Self {
            self.$($provider).+ = provider;
            self
        }
    };
}

/// Setters of builders that run a whole configuration.
macro_rules! engine_setters {
    () => {
        /// The source of security group keys.
        pub fn keys(mut self, keys: impl KeySource + 'static) -> Self {
            self.options.keys = Some(Box::new(keys));
            self
        }

        /// How keys are requested, and how long invalidated keys are still used.
        pub fn key_store(mut self, options: super::KeyStoreOptions) -> Self {
            self.options.engine.key_store = options;
            self
        }

        /// The address space of the Variables in the configuration: its PublishedDataItems and TargetVariables.
        pub fn space(mut self, space: &Arc<AddressSpace>) -> Self {
            self.space = Some(Arc::clone(space));
            self
        }

        /// Real-time settings of the kernel. Default: only those that need no privileges.
        pub fn real_time(mut self, real_time: RealTime) -> Self {
            self.options.real_time = real_time;
            self
        }
    };
}

/// Setters of builders that send datagrams.
macro_rules! datagram_setters {
    ($($options:ident).+) => {
        /// UDP settings.
        pub fn udp(mut self, options: UdpOptions) -> Self {
            self.$($options).+.udp = options;
            self
        }
    };
}

pub(super) use {datagram_setters, engine_setters, transport_setters};
