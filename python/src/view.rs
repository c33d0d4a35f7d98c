//! Arrays of numbers as Python sees them: memory with a type, by the buffer protocol.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyType};
use tsuji::Bytes;
use tsuji_msg::definition::{ScalarKind, Shape};

/// What an element is: its bytes, its letter in the language of `struct`, and its name in numpy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElementKind {
    pub(crate) size: usize,
    format: &'static CStr,
    dtype: &'static str,
}

pub(crate) fn element_kind(kind: ScalarKind) -> ElementKind {
    use ScalarKind as K;
    let (size, format, dtype) = match kind {
        K::Bool => (1, c"?", "bool"),
        K::Byte | K::Char | K::U8 => (1, c"B", "uint8"),
        K::I8 => (1, c"b", "int8"),
        K::U16 => (2, c"H", "uint16"),
        K::I16 => (2, c"h", "int16"),
        K::U32 => (4, c"I", "uint32"),
        K::I32 => (4, c"i", "int32"),
        K::U64 => (8, c"Q", "uint64"),
        K::I64 => (8, c"q", "int64"),
        K::F32 => (4, c"f", "float32"),
        K::F64 => (8, c"d", "float64"),
    };
    ElementKind { size, format, dtype }
}

impl ElementKind {
    pub(crate) fn dtype(self) -> &'static str {
        self.dtype
    }

    /// Makes of bytes what an array of this kind may have: a truth value is 0 or 1.
    pub(crate) fn mend(self, bytes: &mut [u8]) {
        if self.format == c"?" {
            bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
    }
}

/// Memory of an array, which lives as long as somebody holds the array.
#[expect(dead_code, reason = "it is held, and not looked at")]
pub(crate) enum Memory {
    /// Of a sample that came, and which others may read too.
    Received(Bytes),
    /// Of its own, aligned for every number.
    Own(Box<[u64]>),
    /// Of a loan.
    Lent(std::sync::Arc<crate::loan::LoanMemory>),
}

/// An array of numbers in memory that somebody lent. numpy, memoryview and everything else that speaks the buffer protocol read it
/// where it is.
#[pyclass(frozen, module = "tsuji")]
pub(crate) struct Array {
    _memory: Memory,
    start: *mut c_void,
    kind: ElementKind,
    is_readonly: bool,
    // What the protocol points to.
    shape: [ffi::Py_ssize_t; 1],
    strides: [ffi::Py_ssize_t; 1],
}

// SAFETY: the memory is shared; who may write to it is the business of Python programs, as of every buffer.
unsafe impl Send for Array {}
// SAFETY: as above.
unsafe impl Sync for Array {}

impl Array {
    /// Of these bytes of a sample, in the byte order of this machine.
    pub(crate) fn received(bytes: &Bytes, part: &[u8], kind: ElementKind) -> Self {
        let start = part.as_ptr().cast_mut().cast();
        let memory = Memory::Received(bytes.clone());
        Self::new(memory, start, part.len() / kind.size, kind, true)
    }

    /// Of its own memory, all zeros.
    pub(crate) fn own(count: usize, kind: ElementKind) -> Self {
        let mut memory = vec![0_u64; (count * kind.size).div_ceil(8)].into_boxed_slice();
        let start = memory.as_mut_ptr().cast();
        Self::new(Memory::Own(memory), start, count, kind, false)
    }

    /// Of a part of a loan.
    ///
    /// # Safety
    ///
    /// There are `count` elements at `start` as long as `lent` is there, and nobody else writes to them.
    pub(crate) unsafe fn lent(
        lent: std::sync::Arc<crate::loan::LoanMemory>,
        start: *mut u8,
        count: usize,
        kind: ElementKind,
    ) -> Self {
        Self::new(Memory::Lent(lent), start.cast(), count, kind, false)
    }

    fn new(
        memory: Memory,
        start: *mut c_void,
        count: usize,
        kind: ElementKind,
        is_readonly: bool,
    ) -> Self {
        let (count, size) = (count as ffi::Py_ssize_t, kind.size as ffi::Py_ssize_t);
        Self { _memory: memory, start, kind, is_readonly, shape: [count], strides: [size] }
    }

    /// The same, to be read alone.
    pub(crate) fn read_only(self) -> Self {
        Self { is_readonly: true, ..self }
    }

    /// The bytes of memory of its own that nobody has seen yet.
    pub(crate) fn fill(&self, fill: impl FnOnce(&mut [u8])) {
        debug_assert!(matches!(self._memory, Memory::Own(_)));
        let len = self.shape[0] as usize * self.kind.size;
        if len != 0 {
            // SAFETY: the memory is its own, so large, and was shown to nobody.
            fill(unsafe { std::slice::from_raw_parts_mut(self.start.cast(), len) });
        }
    }
}

#[pymethods]
impl Array {
    fn __len__(&self) -> usize {
        self.shape[0] as usize
    }

    /// # Safety
    ///
    /// As the buffer protocol has it.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("no view is asked for"));
        }
        // SAFETY: the caller lends a view.
        unsafe { (*view).obj = ptr::null_mut() };
        let this = slf.get();
        if this.is_readonly && flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err(
                "the array is of a message that came, and cannot be written to; allowed: a copy of it",
            ));
        }
        // SAFETY: the caller lends a view; what it points to lives as long as `obj`, which is this array.
        unsafe {
            (*view).buf = match this.shape[0] {
                // A view of nothing has an address all the same.
                0 => ptr::from_ref(&this.shape).cast_mut().cast(),
                _ => this.start,
            };
            (*view).len = this.shape[0] * this.strides[0];
            (*view).readonly = c_int::from(this.is_readonly);
            (*view).itemsize = this.strides[0];
            (*view).format = match flags & ffi::PyBUF_FORMAT {
                ffi::PyBUF_FORMAT => this.kind.format.as_ptr().cast_mut(),
                _ => ptr::null_mut(),
            };
            (*view).ndim = 1;
            (*view).shape = match flags & ffi::PyBUF_ND {
                ffi::PyBUF_ND => this.shape.as_ptr().cast_mut(),
                _ => ptr::null_mut(),
            };
            (*view).strides = match flags & ffi::PyBUF_STRIDES {
                ffi::PyBUF_STRIDES => this.strides.as_ptr().cast_mut(),
                _ => ptr::null_mut(),
            };
            (*view).suboffsets = ptr::null_mut();
            (*view).internal = ptr::null_mut();
            (*view).obj = slf.into_any().into_ptr();
        }
        Ok(())
    }
}

/// What a program gets for an array: one of numpy where that can be imported, else a memoryview.
pub(crate) fn to_python<'py>(py: Python<'py>, array: Array) -> PyResult<Bound<'py, PyAny>> {
    shown(Bound::new(py, array)?)
}

/// The same of one that Python has already.
pub(crate) fn shown<'py>(array: Bound<'py, Array>) -> PyResult<Bound<'py, PyAny>> {
    let (py, dtype) = (array.py(), array.get().kind.dtype);
    match numpy(py) {
        Some(numpy) => numpy.frombuffer.bind(py).call1((array, dtype)),
        None => Ok(pyo3::types::PyMemoryView::from(&array.into_any())?.into_any()),
    }
}

/// Whether sequences of numbers are arrays of Python's module `array`, as rclpy has them, and those of truth values lists. They are
/// copies then, and can be changed.
static HAS_PLAIN_SEQUENCES: AtomicBool = AtomicBool::new(false);

/// From now on sequences of numbers are what rclpy has for them, in the whole process.
#[pyfunction]
pub(crate) fn use_plain_sequences() {
    HAS_PLAIN_SEQUENCES.store(true, Ordering::Relaxed);
}

/// What a program gets for the numbers of a field.
pub(crate) fn field_to_python<'py>(
    py: Python<'py>,
    shape: Shape,
    array: Array,
) -> PyResult<Bound<'py, PyAny>> {
    let is_truth = array.kind.format == c"?";
    if !HAS_PLAIN_SEQUENCES.load(Ordering::Relaxed) || matches!(shape, Shape::Array(_)) && !is_truth
    {
        return to_python(py, array);
    }
    let letter = array.kind.format;
    let memory = pyo3::types::PyMemoryView::from(&Bound::new(py, array)?.into_any())?;
    if is_truth {
        return memory.call_method0("tolist");
    }
    let letter = letter.to_str().unwrap_or_default();
    // By bytes it copies at once, and else number by number.
    let made = array_type(py)?.call1((letter,))?;
    made.call_method1("frombytes", (memory.call_method1("cast", ("B",))?,))?;
    Ok(made)
}

/// What a message keeps of the numbers of a field that no program has seen: most that are filled in and published never are.
pub(crate) fn kept<'py>(
    py: Python<'py>,
    shape: Shape,
    array: Array,
) -> PyResult<Bound<'py, PyAny>> {
    match has_plain_sequences() {
        true => field_to_python(py, shape, array),
        false => Ok(Bound::new(py, array)?.into_any()),
    }
}

fn array_type(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static ARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    ARRAY.import(py, "array", "array")
}

/// Whether sequences are as rclpy has them.
pub(crate) fn has_plain_sequences() -> bool {
    HAS_PLAIN_SEQUENCES.load(Ordering::Relaxed)
}

/// Whether a program's own array is kept as the numbers of a field: where it is changed, the field is.
pub(crate) fn is_kept(value: &Bound<'_, PyAny>, shape: Shape) -> bool {
    if has_plain_sequences() && !matches!(shape, Shape::Array(_)) {
        return array_type(value.py()).is_ok_and(|it| value.is_instance(it).unwrap_or(false));
    }
    is_numpy(value)
}

/// A copy of an array, which can be written to.
pub(crate) fn copied<'py>(
    kind: ScalarKind,
    shape: Shape,
    value: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let element = element_kind(kind);
    if let Ok(list) = value.cast::<PyList>() {
        return list.call_method0("copy");
    }
    let lent = BufferView::of(value, element).ok_or_else(|| no_array(value, element))?;
    field_to_python(value.py(), shape, lent.copied(element))
}

/// The functions of numpy that are called here.
struct Numpy {
    frombuffer: Py<PyAny>,
    array_type: Py<PyType>,
}

fn numpy(py: Python<'_>) -> Option<&Numpy> {
    static NUMPY: PyOnceLock<Option<Numpy>> = PyOnceLock::new();
    NUMPY
        .get_or_init(py, || {
            let module = py.import("numpy").ok()?;
            let frombuffer = module.getattr("frombuffer").ok()?.unbind();
            let array_type = module.getattr("ndarray").ok()?.cast_into::<PyType>().ok()?.unbind();
            Some(Numpy { frombuffer, array_type })
        })
        .as_ref()
}

/// Whether it is an array of numpy.
pub(crate) fn is_numpy(value: &Bound<'_, PyAny>) -> bool {
    let py = value.py();
    numpy(py).is_some_and(|it| value.is_instance(it.array_type.bind(py)).unwrap_or(false))
}

/// The memory of whatever speaks the buffer protocol, if it has no gaps, and elements of this kind.
pub(crate) struct BufferView {
    view: Box<ffi::Py_buffer>,
}

impl BufferView {
    pub(crate) fn of(value: &Bound<'_, PyAny>, kind: ElementKind) -> Option<Self> {
        // SAFETY: the interpreter is attached, and the view is released when this is dropped.
        let view = unsafe {
            if ffi::PyObject_CheckBuffer(value.as_ptr()) == 0 {
                return None;
            }
            let mut view = Box::new(std::mem::zeroed::<ffi::Py_buffer>());
            let flags = ffi::PyBUF_FORMAT | ffi::PyBUF_ND | ffi::PyBUF_C_CONTIGUOUS;
            if ffi::PyObject_GetBuffer(value.as_ptr(), &mut *view, flags) != 0 {
                drop(PyErr::take(value.py()));
                return None;
            }
            Self { view }
        };
        view.is_of(kind).then_some(view)
    }

    fn is_of(&self, kind: ElementKind) -> bool {
        let format = match self.view.format.is_null() {
            true => c"B",
            // SAFETY: the protocol has it end with a nul, for as long as the view is held.
            false => unsafe { CStr::from_ptr(self.view.format) },
        };
        let letters = format.to_bytes();
        let native = letters.strip_prefix(b"@").or(letters.strip_prefix(b"=")).unwrap_or(letters);
        let native = match cfg!(target_endian = "little") {
            true => native.strip_prefix(b"<").unwrap_or(native),
            false => native.strip_prefix(b">").unwrap_or(native),
        };
        let is_alike = match (native, kind.format.to_bytes()) {
            // A long is of 8 bytes here; so is what numpy calls one.
            (b"l", b"q") | (b"L", b"Q") => self.view.itemsize == 8,
            (b"l", b"i") | (b"L", b"I") => self.view.itemsize == 4,
            // The bytes of `bytes` and `bytearray`, and of a text of C.
            (b"B" | b"c", b"B") => true,
            (is, shall) => is == shall,
        };
        is_alike && 0 < self.view.ndim && self.view.itemsize as usize == kind.size
    }

    /// Memory of its own with the same numbers.
    pub(crate) fn copied(&self, element: ElementKind) -> Array {
        let bytes = self.bytes();
        let array = Array::own(bytes.len() / element.size, element);
        array.fill(|own| {
            own.copy_from_slice(bytes);
            element.mend(own);
        });
        array
    }

    /// Whether it has one dimension.
    pub(crate) fn is_flat(&self) -> bool {
        self.view.ndim == 1
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        if self.view.len == 0 {
            return &[];
        }
        // SAFETY: the protocol has so many bytes there while the view is held. Other threads may write to them meanwhile, as to
        // every buffer: then some bytes are the new ones, which is what they asked for.
        unsafe { std::slice::from_raw_parts(self.view.buf.cast(), self.view.len as usize) }
    }
}

impl Drop for BufferView {
    fn drop(&mut self) {
        // SAFETY: views are dropped while attached.
        Python::attach(|_| unsafe { ffi::PyBuffer_Release(&mut *self.view) });
    }
}

/// Why this is no array of such elements.
pub(crate) fn no_array(value: &Bound<'_, PyAny>, kind: ElementKind) -> PyErr {
    let of = value.get_type().name().map(|name| name.to_string()).unwrap_or_default();
    PyTypeError::new_err(format!(
        "{of}; allowed: a sequence of {0}, or an array or buffer of them without gaps",
        kind.dtype
    ))
}
