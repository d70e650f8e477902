//! Congestion control algorithms from outside that have the C interface of `elephan-cc.h`.
//!
//! An [`Object`] is a table of functions: of a shared object, or of this process. It is checked when it is opened, and
//! its parameters are read. It makes instances ([`Object::build`]), whose calls are those of the table without a conversion.

use std::error::Error;
use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::sync::Arc;

use elephan_cc::Cause;
use elephan_cc::governor::{Event, Fault, Governor, Limits, Report};
use elephan_cc::registry::AnyAlgorithm;
use elephan_units::Mistake;
use elephan_units::entry::{Parameter, Range};
use libloading::Library;

use crate::registered::Description;

/// `ELEPHAN_CC_ABI`.
const ABI: u32 = 1;
/// The name of the table in a shared object.
const SYMBOL: &str = "elephan_cc";
/// `enum elephan_cc_flag`.
const GOVERNS_RECOVERY: u32 = 1;
const NEEDS_RATE: u32 = 2;
const NEEDS_ECN: u32 = 4;

/// `struct elephan_cc_parameter`.
#[repr(C)]
struct Row {
    name: *const c_char,
    meaning: *const c_char,
    value: f64,
    low: f64,
    high: f64,
}

type State = *mut c_void;
type Call = unsafe extern "C" fn(State, *mut Limits, *const Report);
type CallWith = unsafe extern "C" fn(State, *mut Limits, *const Report, u32);

/// `struct elephan_cc`.
#[repr(C)]
struct Table {
    abi: u32,
    size: u32,
    flags: u32,
    reserved: u32,
    name: *const c_char,
    title: *const c_char,
    source: *const c_char,
    parameters: *const Row,
    create: Option<unsafe extern "C" fn(*const f64, u64) -> State>,
    clone: Option<unsafe extern "C" fn(State) -> State>,
    destroy: Option<unsafe extern "C" fn(State)>,
    on_start: Option<Call>,
    on_ack: Option<Call>,
    on_congestion: Option<CallWith>,
    on_state: Option<Call>,
    on_event: Option<CallWith>,
    on_undo: Option<unsafe extern "C" fn(State, *mut Limits, *const Limits)>,
}

/// The functions of a table, with those that must be there.
#[derive(Clone, Copy)]
struct Functions {
    flags: u32,
    create: unsafe extern "C" fn(*const f64, u64) -> State,
    clone: unsafe extern "C" fn(State) -> State,
    destroy: unsafe extern "C" fn(State),
    on_start: Option<Call>,
    on_ack: Call,
    on_congestion: CallWith,
    on_state: Option<Call>,
    on_event: Option<CallWith>,
    on_undo: Option<unsafe extern "C" fn(State, *mut Limits, *const Limits)>,
}

/// An algorithm with the C interface.
pub struct Object {
    name: String,
    description: Description,
    functions: Functions,
}

/// The text at an address, if there is any.
fn text(at: *const c_char) -> Option<String> {
    // SAFETY: the interface asks for a string that ends with a zero, or NULL.
    (!at.is_null()).then(|| unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned())
}

/// Loads an object with all that it refers to: a function that is missing would end the process when it is first called.
///
/// # Safety
/// The initialisers of the object may run.
#[cfg(unix)]
unsafe fn load(path: &Path) -> Result<Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: the caller's.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map(Into::into)
}

/// The same where a missing function is found at once anyway.
///
/// # Safety
/// The initialisers of the object may run.
#[cfg(not(unix))]
unsafe fn load(path: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: the caller's.
    unsafe { Library::new(path) }
}

/// Whether a name can stand in a scenario file.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

impl Object {
    /// Loads a shared object and reads its table. It stays loaded as long as the process lives.
    ///
    /// Its code is run: the caller must trust it. A [`Mistake`] has the path as its key.
    pub fn open(path: &Path) -> Result<Self, Mistake> {
        let key = path.display().to_string();
        // SAFETY: the initialisers of the object run. The user named it, and so trusts it as a program.
        let library = unsafe { load(path) }.map_err(|error| {
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            Mistake::new(&*key, "a shared object that can be loaded", why)
        })?;
        // SAFETY: what the symbol is is checked as far as it can be: its ABI comes first.
        let table = unsafe { library.get::<*const Table>(SYMBOL) }.map(|symbol| *symbol);
        let table = table.map_err(|_| {
            Mistake::new(&*key, "the symbol elephan_cc (elephan-cc.h)", "an object without it")
        })?;
        // SAFETY: the object is never unloaded, so what the table leads to stays valid.
        let object = unsafe { Self::read(table, &key) }?;
        std::mem::forget(library);
        Ok(object)
    }

    /// Reads the table at an address of this process.
    ///
    /// # Safety
    /// A `struct elephan_cc` is there, and it and all that it leads to stay as they are as long as the process lives.
    pub unsafe fn at(address: usize) -> Result<Self, Mistake> {
        // SAFETY: the caller's.
        unsafe { Self::read(std::ptr::with_exposed_provenance(address), "elephan_cc") }
    }

    /// Reads a table; mistakes have keys below `key`.
    ///
    /// # Safety
    /// As for [`Object::at`].
    unsafe fn read(table: *const Table, key: &str) -> Result<Self, Mistake> {
        let wrong = |expected: &str, found: &dyn std::fmt::Display| Err(Mistake::new(key, expected, found));
        if table.is_null() || !table.is_aligned() {
            return wrong("the address of a struct elephan_cc", &format_args!("{table:p}"));
        }
        // SAFETY: every version of the interface begins with these two numbers.
        let [abi, size] = unsafe { [(*table).abi, (*table).size] };
        if abi != ABI {
            return wrong(
                &format!("an object of ABI {ABI} (elephan-cc.h)"),
                &format_args!("one of ABI {abi}"),
            );
        }
        if (size as usize) < size_of::<Table>() {
            let expected = format!("a struct elephan_cc of {} bytes or more", size_of::<Table>());
            return wrong(&expected, &format_args!("{size} bytes"));
        }
        // SAFETY: it has the size of the structure.
        let table = unsafe { &*table };
        let name = text(table.name).unwrap_or_default();
        if !is_name(&name) {
            return wrong("a name of letters, digits, _ and -", &format_args!("\"{name}\""));
        }
        let (Some(create), Some(clone), Some(destroy), Some(on_ack), Some(on_congestion)) =
            (table.create, table.clone, table.destroy, table.on_ack, table.on_congestion)
        else {
            return wrong(
                "the functions create, clone, destroy, on_ack and on_congestion",
                &"NULL in place of one of them",
            );
        };
        // SAFETY: a list that ends with a row without a name, or NULL.
        let parameters = unsafe { parameters(table.parameters) }.map_err(|mistake| mistake.below(key))?;
        Ok(Self {
            description: Description {
                title: text(table.title).unwrap_or_else(|| name.clone()),
                source: text(table.source).unwrap_or_default(),
                parameters,
            },
            name,
            functions: Functions {
                flags: table.flags,
                create,
                clone,
                destroy,
                on_start: table.on_start,
                on_ack,
                on_congestion,
                on_state: table.on_state,
                on_event: table.on_event,
                on_undo: table.on_undo,
            },
        })
    }

    /// The name that it gives itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its title, source and parameters.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// An instance with these values of the parameters, in their order.
    ///
    /// # Panics
    /// If there are not as many values as parameters.
    pub fn build(&self, values: &[f64]) -> AnyAlgorithm {
        assert_eq!(values.len(), self.description.parameters.len(), "parameters of {}", self.name);
        AnyAlgorithm::Governor(Box::new(Connection::new(self.functions, values.into(), 0)))
    }
}

/// Reads a table of parameters.
///
/// # Safety
/// The list is NULL, or ends with a row without a name.
unsafe fn parameters(mut row: *const Row) -> Result<Vec<Parameter>, Mistake> {
    let mut all: Vec<Parameter> = Vec::new();
    if row.is_null() {
        return Ok(all);
    }
    loop {
        // SAFETY: the row without a name was not reached yet.
        let &Row { name, meaning, value, low, high } = unsafe { &*row };
        let Some(name) = text(name) else { return Ok(all) };
        if !is_name(&name) || all.iter().any(|known| known.name == name) {
            let expected = "parameters with names of their own, of letters, digits, _ and -";
            return Err(Mistake::new("parameters", expected, format_args!("\"{name}\"")));
        }
        if !value.is_finite() || !(low..=high).contains(&value) {
            let expected = format!("a default from {low} to {high}, which are its range");
            return Err(Mistake::new(name, expected, value));
        }
        all.push(Parameter {
            name: name.into(),
            meaning: text(meaning).unwrap_or_default().into(),
            unit: "".into(),
            default: value.into(),
            range: Range::Number { low, high, above: false },
        });
        // SAFETY: a further row follows one with a name.
        row = unsafe { row.add(1) };
    }
}

/// The congestion control of one connection by an object.
struct Connection {
    functions: Functions,
    values: Arc<[f64]>,
    /// NULL if the object made none.
    state: State,
}

// SAFETY: the interface says that calls for different connections may come from different threads; those for one come
// one after the other, and so do not need `Sync`'s promise of anything that changes.
unsafe impl Send for Connection {}
// SAFETY: as above; a shared reference allows no call but `clone`, which reads.
unsafe impl Sync for Connection {}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.state.is_null() {
            // SAFETY: the state was made by this object, and is not used again.
            unsafe { (self.functions.destroy)(self.state) };
        }
    }
}

impl Connection {
    fn new(functions: Functions, values: Arc<[f64]>, seed: u64) -> Self {
        // SAFETY: there is a value for each parameter.
        let state = unsafe { (functions.create)(values.as_ptr(), seed) };
        Self { functions, values, state }
    }

    fn has_flag(&self, flag: u32) -> bool {
        self.functions.flags & flag != 0
    }

    /// The state, if there is one.
    #[inline]
    fn its_state(&self) -> Result<State, Fault> {
        if self.state.is_null() { Err(Self::stateless()) } else { Ok(self.state) }
    }

    #[cold]
    fn stateless() -> Fault {
        Fault::new(
            "create: expected a state, found NULL: it refuses the values of the parameters, or has no memory",
        )
    }

    #[inline]
    fn call(&self, call: Option<Call>, limits: &mut Limits, report: &Report) -> Result<(), Fault> {
        let Some(call) = call else { return Ok(()) };
        // SAFETY: the state is this object's, and the structures have the layout of the interface.
        unsafe { call(self.its_state()?, limits, report) };
        Ok(())
    }

    fn call_with(
        &self,
        call: Option<CallWith>,
        limits: &mut Limits,
        report: &Report,
        number: u32,
    ) -> Result<(), Fault> {
        let Some(call) = call else { return Ok(()) };
        // SAFETY: as in `call`.
        unsafe { call(self.its_state()?, limits, report, number) };
        Ok(())
    }
}

impl Governor for Connection {
    fn governs_recovery(&self) -> bool {
        self.has_flag(GOVERNS_RECOVERY)
    }

    fn needs_rate(&self) -> bool {
        self.has_flag(NEEDS_RATE)
    }

    fn needs_ecn(&self) -> bool {
        self.has_flag(NEEDS_ECN)
    }

    fn start(&mut self, limits: &mut Limits, report: &Report) -> Result<(), Fault> {
        self.call(self.functions.on_start, limits, report)
    }

    #[inline]
    fn ack(&mut self, limits: &mut Limits, report: &Report) -> Result<(), Fault> {
        self.call(Some(self.functions.on_ack), limits, report)
    }

    fn congestion(&mut self, limits: &mut Limits, report: &Report, cause: Cause) -> Result<(), Fault> {
        let number = match cause {
            Cause::Loss => 0,
            Cause::Ecn => 1,
            Cause::Timeout => 2,
        };
        self.call_with(Some(self.functions.on_congestion), limits, report, number)
    }

    fn state(&mut self, limits: &mut Limits, report: &Report) -> Result<(), Fault> {
        self.call(self.functions.on_state, limits, report)
    }

    fn event(&mut self, limits: &mut Limits, report: &Report, event: Event) -> Result<(), Fault> {
        // The numbers of `enum elephan_cc_event` are in this order.
        self.call_with(self.functions.on_event, limits, report, event as u32)
    }

    fn undo(&mut self, limits: &mut Limits, before: &Limits) -> Result<bool, Fault> {
        let Some(on_undo) = self.functions.on_undo else { return Ok(false) };
        // SAFETY: as in `call`.
        unsafe { on_undo(self.its_state()?, limits, before) };
        Ok(true)
    }

    fn fresh(&self, seed: u64) -> Box<dyn Governor> {
        Box::new(Self::new(self.functions, Arc::clone(&self.values), seed))
    }

    fn boxed(&self) -> Box<dyn Governor> {
        let (functions, values) = (self.functions, Arc::clone(&self.values));
        // SAFETY: the state was made by this object.
        let state = if self.state.is_null() { self.state } else { unsafe { (functions.clone)(self.state) } };
        Box::new(Self { functions, values, state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" {
        static el_sizes: [u64; 4];
    }

    #[test]
    fn structures_have_the_layout_of_the_header() {
        let ours = [size_of::<Limits>(), size_of::<Report>(), size_of::<Row>(), size_of::<Table>()];
        // SAFETY: constants of foreign.c.
        assert_eq!(ours.map(|size| size as u64), unsafe { el_sizes });
    }

    #[test]
    fn nothing_is_read_where_no_table_can_be() {
        for (address, found) in [(0, "0x0"), (1, "0x1")] {
            // SAFETY: the address is not read.
            let error = unsafe { Object::at(address) }.err().expect("an error").to_string();
            let expected = "elephan_cc: expected the address of a struct elephan_cc, found ";
            assert_eq!(error, format!("{expected}{found}"));
        }
    }
}
