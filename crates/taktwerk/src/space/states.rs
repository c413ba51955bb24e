//! Variables with named values (DiscreteItemType, Part 8 §5.3.3).

use super::node::Node;
use crate::error::BuildError;
use crate::value::Struct;
use taktwerk_schema::EnumValueType;
use taktwerk_schema::ids::variable_type_ids;
use taktwerk_server::space::VariableHandle;
use taktwerk_types::{DataValue, LocalizedText, NodeId, QualifiedName, Variant};

/// The properties that [`States::add_to`] adds.
pub(super) const PROPERTIES: [&str; 5] =
    ["TrueState", "FalseState", "EnumStrings", "EnumValues", "ValueAsText"];

/// The names of a variable's values, in the order of the values.
#[derive(Debug, Clone, Default)]
pub(super) struct States(Vec<(i64, LocalizedText)>);

/// How the names are represented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// TrueState and FalseState.
    Two,
    /// EnumStrings: the values count from 0 without a gap.
    Strings,
    /// EnumValues and ValueAsText.
    Values,
}

impl States {
    pub(super) fn new(mut states: Vec<(i64, LocalizedText)>) -> Self {
        states.sort_by_key(|(value, _)| *value);
        states.dedup_by_key(|(value, _)| *value);
        Self(states)
    }

    fn form(&self, data_type: &NodeId) -> Option<Form> {
        let counts = || self.0.iter().enumerate().all(|(at, (value, _))| i64::try_from(at) == Ok(*value));
        match data_type.ns0()? {
            1 if self.text(0).is_some() && self.text(1).is_some() => Some(Form::Two),
            _ if self.0.is_empty() => None,
            // Byte, UInt16, UInt32, UInt64: MultiStateDiscreteType requires unsigned integers (Part 8 §5.3.3.3).
            3 | 5 | 7 | 9 if counts() => Some(Form::Strings),
            2..=9 => Some(Form::Values),
            _ => None,
        }
    }

    /// The VariableType for these names; `None` if the data type cannot have named values.
    pub(super) fn variable_type(&self, data_type: &NodeId) -> Option<u32> {
        self.form(data_type).map(|form| match form {
            Form::Two => variable_type_ids::TWO_STATE_DISCRETE_TYPE,
            Form::Strings => variable_type_ids::MULTI_STATE_DISCRETE_TYPE,
            Form::Values => variable_type_ids::MULTI_STATE_VALUE_DISCRETE_TYPE,
        })
    }

    fn text(&self, value: i64) -> Option<&LocalizedText> {
        let at = self.0.binary_search_by_key(&value, |(value, _)| *value).ok()?;
        self.0.get(at).map(|(_, text)| text)
    }

    /// The name of a value, with its status and times. It is empty for a value without a name, and null for an array: clients
    /// look up those names in EnumValues (Part 8 §5.3.3.4).
    fn text_of(&self, data: DataValue) -> DataValue {
        if matches!(data.value, Some(Variant::Array(_))) {
            return DataValue { value: None, ..data };
        }
        let number = data.value.as_ref().and_then(|value| match value {
            Variant::UInt64(value) => i64::try_from(*value).ok(),
            Variant::Int64(value) => Some(*value),
            value => value.as_f64().map(|value| value as i64),
        });
        let text = number.and_then(|number| self.text(number)).cloned().unwrap_or_default();
        DataValue { value: data.value.is_some().then(|| text.into()), ..data }
    }

    /// Adds the properties with the names.
    pub(super) fn add_to(
        self,
        node: &Node,
        data_type: &NodeId,
        handle: &VariableHandle,
    ) -> Result<(), BuildError> {
        match self.form(data_type) {
            None => Ok(()),
            Some(Form::Two) => {
                for (name, value) in [("TrueState", 1), ("FalseState", 0)] {
                    node.standard_property(name, self.text(value).cloned().unwrap_or_default())?;
                }
                Ok(())
            }
            Some(Form::Strings) => {
                let texts: Vec<LocalizedText> = self.0.into_iter().map(|(_, text)| text).collect();
                node.standard_property("EnumStrings", texts)
            }
            Some(Form::Values) => {
                let values = self.0.iter().map(|(value, text)| {
                    let (value, display_name) = (*value, text.clone());
                    Struct(EnumValueType { value, display_name, ..EnumValueType::default() })
                });
                node.standard_property("EnumValues", values.collect::<Vec<_>>())?;
                let handle = handle.clone();
                node.variable("ValueAsText", LocalizedText::default())
                    .browse_name(QualifiedName::new(0, "ValueAsText"))
                    .into_property()
                    .data_source(move || self.text_of(handle.get()))
                    .add()
                    .map(drop)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Client, Server, StatusCode};
    use taktwerk_schema::EnumValueType;
    use taktwerk_types::{ExtensionObject, LocalizedText, NodeId, Variant};

    #[tokio::test]
    async fn names_of_values_depend_on_their_data_type() {
        let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let plant = server.namespace("urn:test").object("Plant").add().unwrap();
        let pump = plant.variable("Pump", false).states([(1, "On"), (0, "Off")]).add().unwrap();
        let gear = plant.variable("Gear", 0u8).states([(0, "Neutral"), (1, "First")]).add().unwrap();
        let mode = plant.variable("Mode", -1i16).states([(-1, "Reverse"), (4, "Fast")]).add().unwrap();
        let modes =
            plant.variable("Modes", vec![-1i16, 4]).states([(-1, "Reverse"), (4, "Fast")]).add().unwrap();
        let speed = plant.variable("Speed", 1.5).states([(0, "Off")]).add().unwrap();
        let running = server.spawn().unwrap();
        let client = Client::connect(&running.url()).await.unwrap();
        let children = client.browse("ns=2;s=Plant").await.unwrap();
        for (node, expected) in [
            (pump.node(), 2373),
            (gear.node(), 2376),
            (mode.node(), 11238),
            (modes.node(), 11238),
            (speed.node(), 63),
        ] {
            let child = children.iter().find(|child| child.node_id.node_id == *node.id()).unwrap();
            assert_eq!(child.type_definition.node_id, NodeId::numeric(0, expected));
        }
        let path = |name: &str| format!("ns=2;s=Plant/{name}");
        for (name, expected) in [("Pump/TrueState", "On"), ("Pump/FalseState", "Off")] {
            let text: LocalizedText = client.read_value(&*path(name)).await.unwrap();
            assert_eq!(text, expected.into());
        }
        let texts: Vec<LocalizedText> = client.read_value(&*path("Gear/EnumStrings")).await.unwrap();
        assert_eq!(texts, ["Neutral".into(), "First".into()]);
        let values: Variant = client.read_value(&*path("Mode/EnumValues")).await.unwrap();
        let values = Vec::<ExtensionObject>::try_from(values).unwrap();
        let values: Vec<EnumValueType> = values.iter().map(|value| value.decode().unwrap()).collect();
        assert_eq!((values[1].value, &values[1].display_name), (4, &"Fast".into()));
        let text = async || client.read(&*path("Mode/ValueAsText")).await.unwrap();
        assert_eq!(text().await.value, Some(LocalizedText::from("Reverse").into()));
        mode.set(4i16);
        assert_eq!(text().await.value, Some(LocalizedText::from("Fast").into()));
        mode.set(7i16);
        assert_eq!(text().await.value, Some(LocalizedText::default().into()));
        // Part 8 §5.3.3.4: null for an array; the names are in EnumValues.
        let several = async || client.read(&*path("Modes/ValueAsText")).await.unwrap();
        assert_eq!((several().await.value, several().await.status()), (None, StatusCode::GOOD));
        modes.set_status(StatusCode::BAD_NO_COMMUNICATION);
        assert_eq!(several().await.status(), StatusCode::BAD_NO_COMMUNICATION);
        let values: Variant = client.read_value(&*path("Modes/EnumValues")).await.unwrap();
        assert_eq!(Vec::<ExtensionObject>::try_from(values).unwrap().len(), 2);
        mode.set_status(StatusCode::BAD_NO_COMMUNICATION);
        assert_eq!(text().await.status(), StatusCode::BAD_NO_COMMUNICATION);
        client.disconnect().await;
        running.stop(std::time::Duration::from_secs(1));
    }
}
