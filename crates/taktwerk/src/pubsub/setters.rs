//! What the builders of publishers, subscribers and Actions have in common: setters of the transport, and the links to
//! brokers.

/// Setters that all builders have. Told where the driver's options, the brokers' and the cryptographic library are;
/// the builder has `connection` and `secured`, which change what is secured and where it goes.
macro_rules! transport_setters {
    (options: $($options:ident).+, mqtt: $($mqtt:ident).+, provider: $($provider:ident).+) => {
        /// The network interface by name or address. Default: what the kernel's routes choose.
        pub fn interface(self, interface: &str) -> Self {
            self.connection(|connection| connection.network_interface = interface.to_owned())
        }

        /// Message security with the keys of a security group, which come from `keys`: what is sent is secured like
        /// this, and what is received has to be. Where there is a whole configuration, this is the least for all its
        /// groups: what is stronger stays, and so do security groups that it names.
        pub fn security(
            mut self,
            mode: SecurityMode,
            security_group_id: &str,
            keys: impl KeySource + 'static,
        ) -> Self {
            self.$($options).+.keys = Some(Box::new(keys));
            self.secured(mode, security_group_id)
        }

        /// How to talk to brokers.
        #[cfg(feature = "mqtt")]
        pub fn mqtt(mut self, options: taktwerk_net::pubsub::mqtt::MqttOptions) -> Self {
            self.$($mqtt).+ = options;
            self
        }

        /// Another cryptographic library. Default: aws-lc.
        pub fn provider(mut self, provider: Arc<dyn PubSubProvider>) -> Self {
            self.$($provider).+ = provider;
            self
        }
    };
}

/// Setters of those that run a whole configuration.
macro_rules! engine_setters {
    () => {
        /// Where keys of security groups come from.
        pub fn keys(mut self, keys: impl KeySource + 'static) -> Self {
            self.options.keys = Some(Box::new(keys));
            self
        }

        /// How keys are asked for, and how long those that the key service has invalidated go on being used.
        pub fn key_store(mut self, options: super::KeyStoreOptions) -> Self {
            self.options.engine.key_store = options;
            self
        }

        /// Where the Variables are that the configuration names: those of its PublishedDataItems and
        /// TargetVariables.
        pub fn space(mut self, space: &Arc<AddressSpace>) -> Self {
            self.space = Some(Arc::clone(space));
            self
        }

        /// What the kernel is asked to do for being on time. Default: nothing that needs a right.
        pub fn real_time(mut self, real_time: RealTime) -> Self {
            self.options.real_time = real_time;
            self
        }
    };
}

/// Setters of those that send datagrams.
macro_rules! datagram_setters {
    ($($options:ident).+) => {
        /// How datagrams travel.
        pub fn udp(mut self, options: UdpOptions) -> Self {
            self.$($options).+.udp = options;
            self
        }
    };
}

pub(super) use {datagram_setters, engine_setters, transport_setters};
