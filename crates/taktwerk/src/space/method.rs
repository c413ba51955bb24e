//! Methods from Rust functions.

use super::node::{Node, Texts, common_setters};
use super::ns0;
use crate::error::BuildError;
use crate::value::{Struct, Value, WrongType};
use core::fmt;
use core::future::Future;
use std::sync::Arc;
use taktwerk_schema::Argument;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_server::callback::{CallContext, MethodCall, MethodHandler};
use taktwerk_server::space::NodeSpec;
use taktwerk_types::{LocalizedText, NodeId, QualifiedName, StatusCode, Variant};

/// The argument types of a method: `()`, or a tuple of up to eight [`Value`]s: `(f64,)`, `(f64, String)`, ….
pub trait Arguments: Sized + Send + 'static {
    /// DataType and ValueRank of each.
    fn types() -> Vec<(u32, i32)>;

    /// Converts the arguments of a call; their number has been checked.
    ///
    /// # Errors
    /// The position of an argument with the wrong type, and its type.
    fn from_variants(values: Vec<Variant>) -> Result<Self, (usize, WrongType)>;

    /// The results of a call.
    fn into_variants(self) -> Vec<Variant>;
}

macro_rules! tuples {
    ($(($($type:ident $at:tt),*))*) => {$(
        impl<$($type: Value),*> Arguments for ($($type,)*) {
            fn types() -> Vec<(u32, i32)> {
                vec![$(($type::DATA_TYPE, $type::VALUE_RANK)),*]
            }

            fn from_variants(values: Vec<Variant>) -> Result<Self, (usize, WrongType)> {
                let mut values = values.into_iter();
                let _ = &mut values;
                Ok(($($type::from_variant(values.next().unwrap_or_default()).map_err(|error| ($at, error))?,)*))
            }

            fn into_variants(self) -> Vec<Variant> {
                vec![$(self.$at.into_variant()),*]
            }
        }
    )*};
}
tuples! {
    ()
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}

/// Settings of a method. Name its arguments, then pass a function to one of the handlers, which adds the method.
///
/// ```
/// # let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
/// # let machine = server.namespace("urn:example").object("Machine").add().unwrap();
/// machine
///     .method("Divide")
///     .inputs(["dividend", "divisor"])
///     .outputs(["quotient", "remainder"])
///     .handler(|_, (dividend, divisor): (i32, i32)| {
///         let quotient = dividend.checked_div(divisor).ok_or(taktwerk::StatusCode::BAD_OUT_OF_RANGE)?;
///         Ok((quotient, dividend % divisor))
///     })?;
/// # Ok::<(), taktwerk::BuildError>(())
/// ```
#[derive(Debug)]
#[must_use = "nothing is added before a handler is given"]
pub struct MethodBuilder {
    parent: Node,
    name: String,
    texts: Texts,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

impl MethodBuilder {
    pub(super) fn new(parent: Node, name: &str) -> Self {
        Self {
            parent,
            name: name.to_owned(),
            texts: Texts::default(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        }
    }

    common_setters!();

    /// The names of the inputs, in order.
    pub fn inputs<const N: usize>(mut self, names: [&str; N]) -> Self {
        self.inputs = names.map(str::to_owned).into();
        self
    }

    /// The names of the outputs, in order.
    pub fn outputs<const N: usize>(mut self, names: [&str; N]) -> Self {
        self.outputs = names.map(str::to_owned).into();
        self
    }

    /// Adds the method with a function that returns quickly.
    ///
    /// # Errors
    /// The id is taken, or the number of names differs from the number of arguments.
    pub fn handler<I: Arguments, O: Arguments>(
        self,
        run: impl Fn(&CallContext, I) -> Result<O, StatusCode> + Send + Sync + 'static,
    ) -> Result<Node, BuildError> {
        let run = move |context: &CallContext, inputs| {
            MethodCall::Now(run(context, inputs).map(Arguments::into_variants))
        };
        self.add::<I, O>(false, run)
    }

    /// Adds the method with a function that may block: it runs on a worker thread.
    ///
    /// # Errors
    /// As [`Self::handler`].
    pub fn blocking_handler<I: Arguments, O: Arguments>(
        self,
        run: impl Fn(&CallContext, I) -> Result<O, StatusCode> + Send + Sync + 'static,
    ) -> Result<Node, BuildError> {
        let run = Arc::new(run);
        let run = move |context: &CallContext, inputs| {
            let (run, context) = (Arc::clone(&run), context.clone());
            MethodCall::Blocking(Box::new(move || run(&context, inputs).map(Arguments::into_variants)))
        };
        self.add::<I, O>(true, run)
    }

    /// Adds the method with an asynchronous function: it runs on the multi-threaded tokio runtime that the server was
    /// started in, or else on a thread of the server.
    ///
    /// # Errors
    /// As [`Self::handler`].
    pub fn async_handler<I: Arguments, O: Arguments, F>(
        self,
        run: impl Fn(CallContext, I) -> F + Send + Sync + 'static,
    ) -> Result<Node, BuildError>
    where
        F: Future<Output = Result<O, StatusCode>> + Send + 'static,
    {
        let run = move |context: &CallContext, inputs| {
            let answer = run(context.clone(), inputs);
            MethodCall::Later(Box::pin(async move { answer.await.map(Arguments::into_variants) }))
        };
        self.add::<I, O>(true, run)
    }

    /// Adds the method with argument types that are only known at run time, such as those of another server's method, and an
    /// asynchronous function. Names set before are ignored.
    ///
    /// # Errors
    /// The id is taken.
    pub fn dynamic_handler<F>(
        self,
        inputs: Vec<Argument>,
        outputs: Vec<Argument>,
        run: impl Fn(CallContext, Vec<Variant>) -> F + Send + Sync + 'static,
    ) -> Result<Node, BuildError>
    where
        F: Future<Output = Result<Vec<Variant>, StatusCode>> + Send + 'static,
    {
        let handler = move |context: &CallContext, inputs: Vec<Variant>| {
            MethodCall::Later(Box::pin(run(context.clone(), inputs)))
        };
        let wrapped = |arguments: Vec<Argument>| arguments.into_iter().map(Struct).collect();
        self.add_handler(Arc::new(Handler(handler, true)), wrapped(inputs), wrapped(outputs))
    }

    fn add<I: Arguments, O: Arguments>(
        self,
        may_block: bool,
        run: impl Fn(&CallContext, I) -> MethodCall + Send + Sync + 'static,
    ) -> Result<Node, BuildError> {
        let handler = move |context: &CallContext, inputs: Vec<Variant>| match I::from_variants(inputs) {
            Ok(inputs) => run(context, inputs),
            Err(_) => MethodCall::Now(Err(StatusCode::BAD_INVALID_ARGUMENT)),
        };
        let inputs = arguments(&self.name, "inputs", &self.inputs, &I::types())?;
        let outputs = arguments(&self.name, "outputs", &self.outputs, &O::types())?;
        self.add_handler(Arc::new(Handler(handler, may_block)), inputs, outputs)
    }

    fn add_handler(
        self,
        handler: Arc<dyn MethodHandler>,
        inputs: Vec<Struct<Argument>>,
        outputs: Vec<Struct<Argument>>,
    ) -> Result<Node, BuildError> {
        let Self { parent, name, mut texts, .. } = self;
        let id = texts.id.take().unwrap_or_else(|| parent.child_id(&name));
        let browse_name = texts.browse_name.take().unwrap_or_else(|| parent.child_name(&name));
        let spec = NodeSpec::method(id.clone(), browse_name, Some(handler));
        parent.add(texts.apply(spec), reference_type_ids::HAS_COMPONENT, None)?;
        let node = Node { space: parent.space, id, namespace: parent.namespace };
        if !inputs.is_empty() {
            node.standard_property("InputArguments", inputs)?;
        }
        if !outputs.is_empty() {
            node.standard_property("OutputArguments", outputs)?;
        }
        Ok(node)
    }
}

/// Describes arguments by their names and types.
///
/// # Errors
/// The number of names differs from the number of types.
pub(crate) fn arguments(
    method: &str,
    what: &'static str,
    names: &[String],
    types: &[(u32, i32)],
) -> Result<Vec<Struct<Argument>>, BuildError> {
    if names.len() != types.len() {
        let (named, typed) = (names.len(), types.len());
        return Err(BuildError::Arguments { method: method.to_owned(), what, named, typed });
    }
    let argument = |(name, (data_type, value_rank)): (&String, &(u32, i32))| {
        Struct(Argument {
            name: name.as_str().into(),
            data_type: ns0(*data_type),
            value_rank: *value_rank,
            array_dimensions: if *value_rank == 1 { vec![0] } else { Vec::new() },
            description: LocalizedText::default(),
        })
    };
    Ok(names.iter().zip(types).map(argument).collect())
}

/// A function, and whether it answers later.
struct Handler<F>(F, bool);

impl<F> MethodHandler for Handler<F>
where
    F: Fn(&CallContext, Vec<Variant>) -> MethodCall + Send + Sync,
{
    fn call(&self, context: &CallContext, inputs: Vec<Variant>) -> MethodCall {
        (self.0)(context, inputs)
    }

    fn may_block(&self) -> bool {
        self.1
    }
}

impl<F> fmt::Debug for Handler<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler")
    }
}
