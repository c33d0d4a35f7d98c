//! Types that are known, and the classes of their messages.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex};

use pyo3::exceptions::{PyLookupError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use tsuji::RawType;
use tsuji::interfaces::Shipped;
use tsuji_build::{AmentIndex, Chain, Folders};
use tsuji_msg::definition::{Base, Literal, ScalarKind, Shape};
use tsuji_msg::{TypeDescription, TypeSet};

use crate::message::{FieldOf, Message};
use crate::waiting::lock;

/// How messages of one type are read and written.
pub(crate) struct Plan {
    pub(crate) ty: Arc<TypeDescription>,
    pub(crate) fields: Vec<FieldPlan>,
    /// It is `sensor_msgs/msg/Image`.
    pub(crate) is_image: bool,
    class: PyOnceLock<Py<PyType>>,
}

pub(crate) struct FieldPlan {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) base: BasePlan,
    /// The least bytes that an element takes.
    pub(crate) element_min: usize,
}

pub(crate) enum BasePlan {
    Scalar(ScalarKind),
    Text { is_wide: bool, bound: Option<u32> },
    Message(Arc<Plan>),
}

impl FieldPlan {
    /// The field's type in the words of rclpy, which are those of IDL.
    pub(crate) fn rclpy_type(&self) -> String {
        use ScalarKind as K;
        let base = match &self.base {
            BasePlan::Scalar(K::Bool) => "boolean".to_owned(),
            BasePlan::Scalar(K::Byte) => "octet".to_owned(),
            BasePlan::Scalar(K::F32) => "float".to_owned(),
            BasePlan::Scalar(K::F64) => "double".to_owned(),
            BasePlan::Scalar(kind) => crate::view::element_kind(*kind).dtype().to_owned(),
            BasePlan::Text { is_wide, bound } => {
                let name = if *is_wide { "wstring" } else { "string" };
                bound.map_or_else(|| name.to_owned(), |bound| format!("{name}<{bound}>"))
            }
            BasePlan::Message(plan) => {
                format!("{}/{}", plan.ty.name().package(), plan.ty.name().name())
            }
        };
        match self.shape {
            Shape::Single => base,
            Shape::Array(count) => format!("{base}[{count}]"),
            Shape::Sequence => format!("sequence<{base}>"),
            Shape::Bounded(most) => format!("sequence<{base}, {most}>"),
        }
    }
}

/// Plans by the hash of their type: what two packages define in two ways is two types.
static PLANS: LazyLock<Mutex<HashMap<String, Arc<Plan>>>> = LazyLock::new(Mutex::default);

pub(crate) type Set = TypeSet<Chain>;

/// Where definitions are looked for: what the program gave, an installed ROS 2, what ships.
struct Known {
    folders: Vec<PathBuf>,
    set: Option<Arc<Set>>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known { folders: Vec::new(), set: None });

impl Plan {
    /// The plan of a type, the same for all who ask.
    pub(crate) fn of(ty: &Arc<TypeDescription>) -> Arc<Self> {
        let key = format!("{} {}", ty.name(), ty.hash());
        if let Some(plan) = lock(&PLANS).get(&key) {
            return Arc::clone(plan);
        }
        let fields = ty.fields().iter().map(|field| FieldPlan {
            name: field.name.clone(),
            shape: field.ty.shape,
            element_min: field.ty.base.min_size(),
            base: match &field.ty.base {
                Base::Scalar(kind) => BasePlan::Scalar(*kind),
                Base::String { bound } => BasePlan::Text { is_wide: false, bound: *bound },
                Base::WString { bound } => BasePlan::Text { is_wide: true, bound: *bound },
                Base::Nested(nested) => BasePlan::Message(Self::of(nested)),
            },
        });
        let (fields, ty) = (fields.collect(), Arc::clone(ty));
        let is_image = ty.name().to_string() == "sensor_msgs/msg/Image";
        let plan = Arc::new(Self { ty, fields, is_image, class: PyOnceLock::new() });
        Arc::clone(lock(&PLANS).entry(key).or_insert(plan))
    }

    /// Of a type by its name, such as `sensor_msgs/msg/Image`.
    pub(crate) fn named(name: &str) -> PyResult<Arc<Self>> {
        let ty = set()?.load(name).map_err(not_found)?;
        Ok(Self::of(&ty))
    }

    pub(crate) fn name(&self) -> String {
        self.ty.name().to_string()
    }

    /// Whether both are of one type: what two packages define in two ways is two types.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
            || self.ty.hash() == other.ty.hash() && self.ty.name() == other.ty.name()
    }

    pub(crate) fn raw(&self) -> RawType {
        RawType::new(self.name()).hash(self.ty.hash())
    }

    /// The class of its messages.
    pub(crate) fn class<'py>(self: &Arc<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyType>> {
        let made = self.class.get_or_try_init(py, || self.make_class(py).map(Bound::unbind))?;
        Ok(made.bind(py).clone())
    }

    fn make_class<'py>(self: &Arc<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyType>> {
        let name = self.ty.name();
        let namespace = PyDict::new(py);
        namespace.set_item("__slots__", PyTuple::empty(py))?;
        namespace.set_item(
            "__module__",
            format!("tsuji.interfaces.{}.{}", name.package(), name.kind()),
        )?;
        namespace.set_item("__doc__", self.doc())?;
        namespace
            .set_item("__match_args__", PyTuple::new(py, self.fields.iter().map(|it| &it.name))?)?;
        namespace.set_item("_plan", Bound::new(py, PlanOf(Arc::clone(self)))?)?;
        for constant in self.ty.constants() {
            namespace.set_item(&constant.name, literal(py, &constant.value)?)?;
        }
        for (index, field) in self.fields.iter().enumerate() {
            let field_of = FieldOf { index, name: field.name.clone() };
            namespace.set_item(&field.name, Bound::new(py, field_of)?)?;
        }
        let bases = PyTuple::new(py, [py.get_type::<Message>()])?;
        let class = py.get_type::<PyType>().call1((name.name(), bases, namespace))?;
        Ok(class.cast_into::<PyType>()?)
    }

    /// The definition, which is the best that can be said of it.
    fn doc(&self) -> String {
        format!("{}\n\n{}", self.ty.name(), self.ty.text())
    }
}

/// How the two messages of a service are read and written.
pub(crate) struct ServicePlan {
    name: String,
    hash: String,
    pub(crate) request: Arc<Plan>,
    pub(crate) response: Arc<Plan>,
}

impl ServicePlan {
    /// Of what a program may say for a service: its name, or what has its classes.
    pub(crate) fn of(said: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        let name: String = match said.extract() {
            Ok(name) => name,
            Err(_) => said.getattr("_service").and_then(|it| it.extract()).map_err(|_| {
                PyTypeError::new_err(format!("{said}; allowed: a service, or its name"))
            })?,
        };
        let found = set()?.load_service(&name);
        let found = found.map_err(not_found)?;
        Ok(Arc::new(Self {
            name: found.name.to_string(),
            hash: found.hash,
            request: Plan::of(&found.request),
            response: Plan::of(&found.response),
        }))
    }

    pub(crate) fn raw(&self) -> RawType {
        RawType::new(&*self.name).hash(&*self.hash)
    }
}

/// The classes of a service's request and response.
#[pyfunction]
pub(crate) fn load_service<'py>(
    py: Python<'py>,
    name: &str,
) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyType>)> {
    let name = pyo3::types::PyString::new(py, name).into_any();
    let plan = ServicePlan::of(&name)?;
    Ok((plan.request.class(py)?, plan.response.class(py)?))
}

/// A class has its plan.
#[pyclass(frozen, module = "tsuji")]
pub(crate) struct PlanOf(pub(crate) Arc<Plan>);

#[pymethods]
impl PlanOf {
    /// The name of the type, such as `sensor_msgs/msg/Image`.
    #[getter]
    fn name(&self) -> String {
        self.0.name()
    }

    /// The hash of the type, `RIHS01_` and 64 digits.
    #[getter]
    fn hash(&self) -> &str {
        self.0.ty.hash()
    }

    /// Its definition with those of the types that it uses.
    #[getter]
    fn definition(&self) -> String {
        self.0.ty.full_text()
    }

    /// Each field with its type as the definition has it.
    #[getter]
    fn fields(&self) -> Vec<(String, String)> {
        let text = |field: &FieldPlan| {
            let base = match &field.base {
                BasePlan::Scalar(kind) => crate::view::element_kind(*kind).dtype().to_owned(),
                BasePlan::Text { is_wide: false, .. } => "string".to_owned(),
                BasePlan::Text { is_wide: true, .. } => "wstring".to_owned(),
                BasePlan::Message(plan) => plan.name(),
            };
            match field.shape {
                Shape::Single => base,
                Shape::Array(count) => format!("{base}[{count}]"),
                Shape::Sequence => format!("{base}[]"),
                Shape::Bounded(most) => format!("{base}[<={most}]"),
            }
        };
        self.0.fields.iter().map(|it| (it.name.clone(), text(it))).collect()
    }
}

/// The plan of a class of messages.
pub(crate) fn plan_of_class(class: &Bound<'_, PyType>) -> PyResult<Arc<Plan>> {
    let plan = class.getattr("_plan")?;
    Ok(Arc::clone(&plan.cast::<PlanOf>()?.get().0))
}

/// What a program may say for a type: its class, or its name.
pub(crate) fn plan_of(said: &Bound<'_, PyAny>) -> PyResult<Arc<Plan>> {
    match said.extract::<String>() {
        Ok(name) => Plan::named(&name),
        Err(_) => {
            said.cast::<PyType>().map_err(PyErr::from).and_then(plan_of_class).map_err(|_| {
                PyTypeError::new_err(format!(
                    "{said}; allowed: a class of messages, or the name of a type"
                ))
            })
        }
    }
}

pub(crate) fn literal<'py>(py: Python<'py>, literal: &Literal) -> PyResult<Bound<'py, PyAny>> {
    Ok(match literal {
        Literal::Bool(value) => pyo3::types::PyBool::new(py, *value).to_owned().into_any(),
        Literal::Integer(value) => value.into_pyobject(py)?.into_any(),
        Literal::Float(value) => value.into_pyobject(py)?.into_any(),
        Literal::Text(value) => value.into_pyobject(py)?.into_any(),
        Literal::List(values) => {
            let list = pyo3::types::PyList::empty(py);
            for value in values {
                list.append(self::literal(py, value)?)?;
            }
            list.into_any()
        }
    })
}

/// The class of messages of a type, by its name.
#[pyfunction]
pub(crate) fn load<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    Plan::named(name)?.class(py)
}

/// The class of messages of a type whose definition is given: with those of all types that it uses under lines of `=` and
/// `MSG: package/Name`, as recordings have it, or alone; then those are looked for.
#[pyfunction]
pub(crate) fn load_text<'py>(
    py: Python<'py>,
    name: &str,
    text: &str,
) -> PyResult<Bound<'py, PyType>> {
    let ty = tsuji_msg::load_full_text(name, text);
    // A definition alone may use types that are looked for.
    let ty = match ty {
        Ok(ty) => ty,
        Err(error) if text.contains("\nMSG: ") => {
            return Err(not_found(error));
        }
        Err(_) => {
            let found = set()?.load_text(name, text);
            found.map_err(not_found)?
        }
    };
    Plan::of(&ty).class(py)
}

/// The names of all types that are known: those that ship, of `AMENT_PREFIX_PATH`, and of the folders that were added.
#[pyfunction]
pub(crate) fn interface_names() -> PyResult<Vec<String>> {
    let folders = lock(&KNOWN).folders.clone();
    let mut names: BTreeSet<String> = tsuji::interfaces::names().map(str::to_owned).collect();
    for folder in folders {
        let found = Folders::below(&folder);
        let found = found.map_err(not_found)?;
        names.extend(found.names().map(|(name, _)| name.to_string()));
    }
    let prefixes = std::env::var_os("AMENT_PREFIX_PATH").unwrap_or_default();
    names.extend(AmentIndex::from_env_value(prefixes).names().0);
    Ok(names.into_iter().collect())
}

/// Looks for definitions in this folder too, before all others: it has packages in it, each with `msg`, `srv` or `action`.
#[pyfunction]
pub(crate) fn add_interface_folder(folder: PathBuf) -> PyResult<()> {
    Folders::below(&folder).map_err(not_found)?;
    let mut known = lock(&KNOWN);
    known.folders.insert(0, folder);
    known.set = None;
    Ok(())
}

pub(crate) fn set() -> PyResult<Arc<Set>> {
    let mut known = lock(&KNOWN);
    if let Some(set) = &known.set {
        return Ok(Arc::clone(set));
    }
    let mut chain = Chain(Vec::new());
    for folder in &known.folders {
        let found = Folders::below(folder);
        chain.0.push(Box::new(found.map_err(not_found)?));
    }
    let prefixes = std::env::var_os("AMENT_PREFIX_PATH").unwrap_or_default();
    chain.0.push(Box::new(AmentIndex::from_env_value(prefixes)));
    chain.0.push(Box::new(Shipped));
    let set = Arc::new(TypeSet::new(chain));
    known.set = Some(Arc::clone(&set));
    Ok(set)
}

/// A type that is not known, or a definition that cannot be read.
pub(crate) fn not_found(error: impl std::fmt::Display) -> PyErr {
    PyLookupError::new_err(error.to_string())
}
