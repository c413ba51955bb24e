//! Translates namespace indexes in the filters of monitored items after the server's NamespaceArray has changed. An
//! EventFilter contains types and fields, an AggregateFilter the aggregate.

use crate::namespaces::Namespaces;
use taktwerk_schema::{
    AggregateFilter, AttributeOperand, EventFilter, LiteralOperand, SimpleAttributeOperand,
};
use taktwerk_types::{
    ArrayValues, ExpandedNodeId, ExtensionObject, NodeId, QualifiedName, Structure, UaString, Variant,
};

/// The filter with its indexes translated to another array; `None` if it has no indexes. A filter that cannot be
/// decoded is not changed: the server reports what is wrong with it.
///
/// # Errors
/// A URI that the other array does not contain.
pub(crate) fn renumbered(
    filter: &ExtensionObject,
    from: &Namespaces,
    to: &Namespaces,
) -> Result<Option<ExtensionObject>, UaString> {
    let arrays = Arrays { from, to };
    if let Ok(mut filter) = filter.decode::<EventFilter>() {
        arrays.event_filter(&mut filter)?;
        return Ok(Some(ExtensionObject::new(&filter)));
    }
    if let Ok(mut filter) = filter.decode::<AggregateFilter>() {
        arrays.node_id(&mut filter.aggregate_type)?;
        return Ok(Some(ExtensionObject::new(&filter)));
    }
    Ok(None)
}

struct Arrays<'a> {
    from: &'a Namespaces,
    to: &'a Namespaces,
}

impl Arrays<'_> {
    fn index(&self, index: &mut u16) -> Result<(), UaString> {
        *index = self.from.renumber(*index, self.to)?;
        Ok(())
    }

    fn node_id(&self, id: &mut NodeId) -> Result<(), UaString> {
        self.index(&mut id.namespace_index)
    }

    /// Ids on other servers and ids with a namespace URI have no index in this array.
    fn expanded(&self, id: &mut ExpandedNodeId) -> Result<(), UaString> {
        if id.server_index == 0 && id.namespace_uri.is_empty() {
            self.node_id(&mut id.node_id)
        } else {
            Ok(())
        }
    }

    fn name(&self, name: &mut QualifiedName) -> Result<(), UaString> {
        self.index(&mut name.namespace_index)
    }

    fn event_filter(&self, filter: &mut EventFilter) -> Result<(), UaString> {
        filter.select_clauses.iter_mut().try_for_each(|clause| self.simple(clause))?;
        let elements = filter.where_clause.elements.iter_mut();
        elements
            .flat_map(|element| &mut element.filter_operands)
            .try_for_each(|operand| self.operand(operand))
    }

    fn simple(&self, operand: &mut SimpleAttributeOperand) -> Result<(), UaString> {
        self.node_id(&mut operand.type_definition_id)?;
        operand.browse_path.iter_mut().try_for_each(|name| self.name(name))
    }

    fn operand(&self, operand: &mut ExtensionObject) -> Result<(), UaString> {
        self.change::<SimpleAttributeOperand>(operand, |operand| self.simple(operand))?;
        self.change::<LiteralOperand>(operand, |literal| self.value(&mut literal.value))?;
        self.change::<AttributeOperand>(operand, |operand| {
            self.node_id(&mut operand.node_id)?;
            operand.browse_path.elements.iter_mut().try_for_each(|element| {
                self.node_id(&mut element.reference_type_id)?;
                self.name(&mut element.target_name)
            })
        })
    }

    fn change<T: Structure>(
        &self,
        object: &mut ExtensionObject,
        change: impl FnOnce(&mut T) -> Result<(), UaString>,
    ) -> Result<(), UaString> {
        if let Ok(mut value) = object.decode::<T>() {
            change(&mut value)?;
            *object = ExtensionObject::new(&value);
        }
        Ok(())
    }

    /// Translates the operands of a condition: types, nodes and names.
    fn value(&self, value: &mut Variant) -> Result<(), UaString> {
        match value {
            Variant::NodeId(id) => self.node_id(id),
            Variant::ExpandedNodeId(id) => self.expanded(id),
            Variant::QualifiedName(name) => self.name(name),
            Variant::Array(array) => match &mut array.values {
                ArrayValues::NodeId(ids) => ids.iter_mut().try_for_each(|id| self.node_id(id)),
                ArrayValues::ExpandedNodeId(ids) => ids.iter_mut().try_for_each(|id| self.expanded(id)),
                ArrayValues::QualifiedName(names) => names.iter_mut().try_for_each(|name| self.name(name)),
                ArrayValues::Variant(values) => values.iter_mut().try_for_each(|value| self.value(value)),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}
