//! Types by the names that clients say, each with its plan.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tsuji::RawType;
use tsuji::action::RawActionType;
use tsuji_codec::Plan;
use tsuji_msg::{Resolver, TypeDescription, TypeSet};
use tsuji_rosbridge::Encoding;

use crate::own::WithOwn;

/// Loads types, and keeps them with their plans. There are as many as there are definitions.
pub(crate) struct Types {
    set: TypeSet<WithOwn<Box<dyn Resolver + Send + Sync>>>,
    messages: Mutex<HashMap<String, Arc<MessageType>>>,
    services: Mutex<HashMap<String, Arc<ServiceType>>>,
    actions: Mutex<HashMap<String, Arc<ActionType>>>,
}

/// A message's type.
#[derive(Debug)]
pub(crate) struct MessageType {
    /// What it consists of.
    pub(crate) description: Arc<TypeDescription>,
    /// How it is read and written.
    pub(crate) plan: Plan,
}

impl MessageType {
    fn new(description: Arc<TypeDescription>) -> Arc<Self> {
        let plan = Plan::new(&description);
        Arc::new(Self { description, plan })
    }

    /// A sample as `encoding` has it. An error says what of it is none of this type.
    pub(crate) fn written(&self, sample: &[u8], encoding: Encoding) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        let written = match encoding {
            Encoding::Json => self.plan.json_from_cdr(sample, &mut out),
            Encoding::Cbor => self.plan.cbor_from_cdr(sample, &mut out),
            Encoding::Bson => self.plan.bson_from_cdr(sample, &mut out),
        };
        written.map(|()| out).map_err(|error| error.to_string())
    }

    /// As topics know it.
    pub(crate) fn raw(&self) -> RawType {
        let name = self.description.name().to_string();
        RawType::new(name).hash(self.description.hash())
    }
}

/// A service's type.
#[derive(Debug)]
pub(crate) struct ServiceType {
    /// As services know it.
    pub(crate) raw: RawType,
    /// What is asked.
    pub(crate) request: Arc<MessageType>,
    /// What is answered.
    pub(crate) response: Arc<MessageType>,
}

/// An action's type.
#[derive(Debug)]
pub(crate) struct ActionType {
    /// Its name in three parts.
    pub(crate) name: String,
    /// What is asked for.
    pub(crate) goal: Arc<MessageType>,
    /// What has become of it.
    pub(crate) result: Arc<TypeDescription>,
    /// How far it has come.
    pub(crate) feedback: Arc<MessageType>,
    /// The service by which its result is asked for.
    pub(crate) get_result: Arc<ServiceType>,
    /// What clients and servers of it need to know.
    pub(crate) raw: RawActionType,
}

impl Types {
    /// Types of which `definitions` has the texts.
    pub(crate) fn new(definitions: Box<dyn Resolver + Send + Sync>) -> Self {
        Self {
            set: TypeSet::new(WithOwn(definitions)),
            messages: Mutex::default(),
            services: Mutex::default(),
            actions: Mutex::default(),
        }
    }

    /// A message, as `pkg/msg/Name` or `pkg/Name`.
    pub(crate) fn message(&self, name: &str) -> Result<Arc<MessageType>, String> {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = messages.get(name) {
            return Ok(Arc::clone(known));
        }
        let loaded = self.set.load(name).map_err(|error| error.to_string())?;
        let full = loaded.name().to_string();
        let ty = messages.entry(full).or_insert_with(|| MessageType::new(loaded));
        Ok(Arc::clone(ty))
    }

    /// A service, as `pkg/srv/Name` or `pkg/Name`.
    pub(crate) fn service(&self, name: &str) -> Result<Arc<ServiceType>, String> {
        let name = of_kind(name, "srv");
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = services.get(&name) {
            return Ok(Arc::clone(known));
        }
        let loaded = self.set.load_service(&name).map_err(|error| error.to_string())?;
        let ty = Arc::new(ServiceType {
            raw: RawType::new(loaded.name.to_string()).hash(loaded.hash),
            request: MessageType::new(loaded.request),
            response: MessageType::new(loaded.response),
        });
        services.insert(name, Arc::clone(&ty));
        Ok(ty)
    }

    /// An action, as `pkg/action/Name` or `pkg/Name`.
    pub(crate) fn action(&self, name: &str) -> Result<Arc<ActionType>, String> {
        let name = of_kind(name, "action");
        let mut actions = self.actions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = actions.get(&name) {
            return Ok(Arc::clone(known));
        }
        let loaded = self.set.load_action(&name).map_err(|error| error.to_string())?;
        let ty = Arc::new(ActionType {
            raw: RawActionType::from(&loaded),
            name: loaded.name.to_string(),
            goal: MessageType::new(loaded.goal),
            result: loaded.result,
            feedback: MessageType::new(loaded.feedback),
            get_result: self.service(&format!("{}_GetResult", loaded.name))?,
        });
        actions.insert(name, Arc::clone(&ty));
        Ok(ty)
    }
}

impl std::fmt::Debug for Types {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Types").finish_non_exhaustive()
    }
}

/// A name in two parts is of the kind that is asked for.
pub(crate) fn of_kind(name: &str, kind: &str) -> String {
    match name.split_once('/') {
        Some((package, rest)) if !rest.contains('/') => format!("{package}/{kind}/{rest}"),
        _ => name.to_owned(),
    }
}
