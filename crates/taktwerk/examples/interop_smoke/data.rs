//! Reading and writing: every built-in type as scalar and array, matrix, structures, index ranges, refusals.

use crate::nodes::{self, CELSIUS, TYPES};
use crate::smoke::{Smoke, attribute, show};
use taktwerk::schema::{ReadValueId, TimestampsToReturn};
use taktwerk::types::{BuiltInType, ByteString, NodeId, StatusCode, Variant};

impl Smoke {
    pub(crate) async fn read_values(&mut self) {
        let rows = nodes::rows(self.ns);
        for row in &rows {
            self.expect(&format!("scalar/{}", row.name), &row.scalar).await;
        }
        for row in &rows {
            self.expect(&format!("array/{}", row.name), &row.array).await;
        }
        self.expect("matrix/Double", &nodes::matrix(5.0)).await;
        self.expect("struct/Range", &nodes::range(0.0)).await;
        self.expect("analog/EURange", &nodes::range(0.0)).await;
        self.expect("struct/EUInformation", &nodes::unit(CELSIUS)).await;
        self.expect("the.answer", &43i32.into()).await;
        self.expect("readonly", &17i32.into()).await;
        self.expect("analog", &50.0.into()).await;
        let got = self.read("counter").await.value;
        let is_counter = got.as_ref().and_then(Variant::built_in_type) == Some(BuiltInType::UInt32);
        self.check("read counter", is_counter, show(got.as_ref()));
        self.read_declarations().await;
        self.read_timestamps().await;
    }

    async fn expect(&mut self, id: &str, wanted: &Variant) {
        let got = self.read(id).await;
        let ok = got.status().is_good() && got.value.as_ref() == Some(wanted);
        let shown = show(got.value.as_ref());
        let detail = if ok { shown } else { format!("{}, got {shown}, want {wanted}", got.status()) };
        self.check(format!("read {id}"), ok, detail);
    }

    /// DataType, ValueRank and AccessLevel of all scalars and arrays, in one request each.
    async fn read_declarations(&mut self) {
        for (kind, rank) in [("scalar", -1), ("array", 1)] {
            let rows = nodes::rows(self.ns);
            let attributes = [attribute::DATA_TYPE, attribute::VALUE_RANK, attribute::ACCESS_LEVEL];
            let items = rows.iter().flat_map(|row| {
                let node_id = self.id(&format!("{kind}/{}", row.name));
                attributes.map(|attribute_id| ReadValueId {
                    node_id: node_id.clone(),
                    attribute_id,
                    ..ReadValueId::default()
                })
            });
            let result = self.read_items(items.collect(), TimestampsToReturn::NEITHER, 0.0).await;
            let values = match result {
                Ok(values) => values,
                Err(fault) => {
                    self.check(format!("attributes {kind}"), false, fault);
                    continue;
                }
            };
            let mut wrong = Vec::new();
            for (row, got) in rows.iter().zip(values.chunks(3)) {
                let rank = if kind == "scalar" && row.name == "Variant" { -2 } else { rank };
                let data_type = Variant::from(NodeId::numeric(0, row.data_type));
                let access = match got.get(2).and_then(|value| value.value.as_ref()) {
                    Some(Variant::Byte(access)) => *access,
                    _ => 0,
                };
                let found = |at: usize| got.get(at).and_then(|value| value.value.as_ref());
                if found(0) != Some(&data_type) || found(1) != Some(&rank.into()) || access & 3 != 3 {
                    wrong.push(row.name);
                }
            }
            let ok = wrong.is_empty() && values.len() == 3 * TYPES;
            self.check(
                format!("attributes {kind}"),
                ok,
                format!("{} results, wrong: {wrong:?}", values.len()),
            );
        }
    }

    async fn read_timestamps(&mut self) {
        for (name, which, wanted) in [
            ("timestamps both", TimestampsToReturn::BOTH, (true, true)),
            ("timestamps source", TimestampsToReturn::SOURCE, (true, false)),
            ("timestamps server", TimestampsToReturn::SERVER, (false, true)),
            ("timestamps neither", TimestampsToReturn::NEITHER, (false, false)),
        ] {
            let item = value_of(self.id("counter"));
            let value =
                self.read_items(vec![item], which, 0.0).await.ok().and_then(|mut values| values.pop());
            let got = value.map(|value| (value.source_timestamp.is_some(), value.server_timestamp.is_some()));
            self.check(name, got == Some(wanted), format!("source, server: {got:?}"));
        }
    }

    pub(crate) async fn write_values(&mut self) {
        for row in nodes::rows(self.ns) {
            self.write_and_restore(&format!("scalar/{}", row.name), row.other, row.scalar).await;
            self.write_and_restore(&format!("array/{}", row.name), row.reversed, row.array).await;
        }
        self.write_and_restore("matrix/Double", nodes::matrix(-5.5), nodes::matrix(5.0)).await;
        self.write_and_restore("struct/Range", nodes::range(-20.0), nodes::range(0.0)).await;
        self.write_and_restore("struct/EUInformation", nodes::unit(42), nodes::unit(CELSIUS)).await;
        // The length of an array may change.
        let original = vec![i32::MIN, -1, 0, 1, i32::MAX];
        self.write_and_restore("array/Int32", original[..2].to_vec().into(), original.into()).await;
    }

    /// Writes `changed`, reads it back, and restores `original`.
    async fn write_and_restore(&mut self, id: &str, changed: Variant, original: Variant) {
        let name = format!("write {id}");
        for value in [&changed, &original] {
            let status = self.write(id, value.clone(), "").await;
            let got = self.read(id).await.value;
            if !status.is_good() || got.as_ref() != Some(value) {
                self.check(name, false, format!("{status}, wrote {value}, read {}", show(got.as_ref())));
                self.write(id, original.clone(), "").await;
                return;
            }
        }
        self.check(name, true, format!("{changed} and back"));
    }

    pub(crate) async fn index_ranges(&mut self) {
        let block = Variant::matrix(vec![2.0, 3.0, 5.0, 6.0], vec![2, 2]).unwrap_or_default();
        for (id, range, wanted) in [
            ("array/Int32", "1:3", Ok(vec![-1i32, 0, 1].into())),
            ("array/Int32", "2", Ok(vec![0i32].into())),
            ("matrix/Double", "0:1,1:2", Ok(block)),
            ("scalar/ByteString", "1:2", Ok(ByteString::from(vec![0x01, 0x7f]).into())),
            ("array/Int32", "10:12", Err(StatusCode::BAD_INDEX_RANGE_NO_DATA)),
            ("array/Int32", "3:1", Err(StatusCode::BAD_INDEX_RANGE_INVALID)),
        ] {
            let got = self.read_attribute(self.id(id), attribute::VALUE, range).await;
            let shown = show(got.value.as_ref());
            let (ok, want) = match &wanted {
                Ok(value) => (got.status().is_good() && got.value.as_ref() == Some(value), value.to_string()),
                Err(status) => (got.status() == *status, status.to_string()),
            };
            let detail = format!("{}, got {shown}, want {want}", got.status());
            self.check(format!("index-range read {id} [{range}]"), ok, detail);
        }
        let status = self.write("array/Int32", vec![70i32, 71].into(), "1:2").await;
        let got = self.read("array/Int32").await.value;
        let wanted = Variant::from(vec![i32::MIN, 70, 71, 1, i32::MAX]);
        let ok = status.is_good() && got.as_ref() == Some(&wanted);
        self.check("index-range write array/Int32 [1:2]", ok, format!("{status}, {}", show(got.as_ref())));
        self.write("array/Int32", vec![i32::MIN, -1, 0, 1, i32::MAX].into(), "").await;
    }

    pub(crate) async fn refusals(&mut self) {
        const UNKNOWN: &[StatusCode] = &[StatusCode::BAD_NODE_ID_UNKNOWN];
        const INVALID: &[StatusCode] = &[StatusCode::BAD_ATTRIBUTE_ID_INVALID];
        const DENIED: StatusCode = StatusCode::BAD_USER_ACCESS_DENIED;
        for (name, id, attribute_id, wanted) in [
            ("read unknown node", "no such node", attribute::VALUE, UNKNOWN),
            ("read value of an object", "interop", attribute::VALUE, INVALID),
            ("read attribute 999", "the.answer", 999, INVALID),
            ("read writeonly", "writeonly", attribute::VALUE, &[StatusCode::BAD_NOT_READABLE, DENIED]),
        ] {
            let got = self.read_attribute(self.id(id), attribute_id, "").await.status();
            self.check_status(name, got, wanted);
        }
        for (name, id, value, wanted) in [
            ("write writeonly", "writeonly", Variant::from(5i32), &[StatusCode::GOOD][..]),
            ("write readonly", "readonly", 5i32.into(), &[StatusCode::BAD_NOT_WRITABLE, DENIED]),
            ("write unknown node", "no such node", 5i32.into(), UNKNOWN),
            ("write wrong type", "scalar/Int32", "not a number".into(), &[StatusCode::BAD_TYPE_MISMATCH]),
            ("write array to scalar", "scalar/Int32", vec![1i32, 2].into(), &[StatusCode::BAD_TYPE_MISMATCH]),
        ] {
            let got = self.write(id, value, "").await;
            self.check_status(name, got, wanted);
        }
        // If a server accepted one of these, the next run must not fail because of it.
        self.write("scalar/Int32", (-123_456_789i32).into(), "").await;

        let both = TimestampsToReturn::BOTH;
        let nothing = self.read_items(Vec::new(), both, 0.0).await;
        let status = nothing.err().map_or(StatusCode::GOOD, |fault| fault.status);
        self.check_status("read nothing", status, &[StatusCode::BAD_NOTHING_TO_DO]);
        let too_old = self.read_items(vec![value_of(self.id("the.answer"))], both, -1.0).await;
        let status = too_old.err().map_or(StatusCode::GOOD, |fault| fault.status);
        self.check_status("read negative max age", status, &[StatusCode::BAD_MAX_AGE_INVALID]);
    }
}

fn value_of(node_id: NodeId) -> ReadValueId {
    ReadValueId { node_id, attribute_id: attribute::VALUE, ..ReadValueId::default() }
}
