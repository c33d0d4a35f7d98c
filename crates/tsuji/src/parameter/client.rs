//! The parameters of another node.

use std::time::Duration;

use crate::{Error, ErrorKind, Node, Result};
use tsuji_interfaces::rcl_interfaces::msg::SetParametersResult;
use tsuji_interfaces::rcl_interfaces::srv::{
    DescribeParameters, DescribeParametersRequest, GetParameterTypes, GetParameterTypesRequest,
    GetParameters, GetParametersRequest, ListParameters, ListParametersRequest, SetParameters,
    SetParametersAtomically, SetParametersAtomicallyRequest, SetParametersRequest,
};

use super::{
    DescribedParameter, Parameter, ParameterList, ParameterType, ParameterValue, QOS, UnknownType,
};
use crate::asking::{Asked, Services};

/// Asks for the parameters of a node, and sets them. Each service is met when it is first needed.
///
/// Every call waits for at most its `timeout`, first for the service and then for the answer, and fails as
/// [`Client::call`](crate::Client::call) does. A text of the node that is not UTF-8 comes with U+FFFD for what is not. Where two nodes of one name are there it answers Invalid: both would
/// set their parameters, and which of them answers is a matter of luck.
#[derive(Debug)]
pub struct ParameterClient {
    services: Services,
    node: String,
    describe: Asked<DescribeParameters>,
    get: Asked<GetParameters>,
    types: Asked<GetParameterTypes>,
    list: Asked<ListParameters>,
    set: Asked<SetParameters>,
    set_atomically: Asked<SetParametersAtomically>,
}

impl ParameterClient {
    /// A client under the node `asking`, for the parameters of the node of this full name.
    pub fn new(asking: &Node, node: &str) -> Self {
        Self {
            services: Services::new(asking, node.to_owned(), QOS, format!("parameters of {node}")),
            node: node.to_owned(),
            describe: Asked::new(),
            get: Asked::new(),
            types: Asked::new(),
            list: Asked::new(),
            set: Asked::new(),
            set_atomically: Asked::new(),
        }
    }

    /// Returns the full name of the node whose parameters these are.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Asks for the names that [`Parameters::list`](super::Parameters::list) answers there.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`](crate::Client::call); [`ErrorKind::Invalid`] if several nodes of this name are there.
    pub fn list(&self, prefixes: &[&str], depth: u64, timeout: Duration) -> Result<ParameterList> {
        let request = ListParametersRequest { prefixes: owned(prefixes), depth };
        let answer = self.services.call(&self.list, "list_parameters", request, timeout)?.result;
        Ok(ParameterList { names: answer.names, prefixes: answer.prefixes })
    }

    /// Asks for the values of these parameters.
    ///
    /// # Errors
    ///
    /// Those of [`list`](Self::list); [`ErrorKind::Invalid`] if the node does not have all of them.
    pub fn get(&self, names: &[&str], timeout: Duration) -> Result<Vec<ParameterValue>> {
        let request = GetParametersRequest { names: owned(names) };
        let answer = self.services.call(&self.get, "get_parameters", request, timeout)?;
        self.all(names, answer.values.into_iter().map(TryInto::try_into))
    }

    /// Asks for the types of these parameters.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Self::get).
    pub fn types(&self, names: &[&str], timeout: Duration) -> Result<Vec<ParameterType>> {
        let request = GetParameterTypesRequest { names: owned(names) };
        let answer = self.services.call(&self.types, "get_parameter_types", request, timeout)?;
        let known = |number| ParameterType::from_number(number).ok_or(UnknownType(number));
        self.all(names, answer.types.into_iter().map(known))
    }

    /// Asks for what the node says of these parameters.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Self::get).
    pub fn describe(&self, names: &[&str], timeout: Duration) -> Result<Vec<DescribedParameter>> {
        let request = DescribeParametersRequest { names: owned(names) };
        let answer = self.services.call(&self.describe, "describe_parameters", request, timeout)?;
        self.all(names, answer.descriptors.into_iter().map(TryInto::try_into))
    }

    /// Sets each of these parameters; says of each in its order why not.
    ///
    /// # Errors
    ///
    /// Those of [`list`](Self::list); [`ErrorKind::Invalid`] if the node does not answer for each.
    pub fn set(
        &self,
        parameters: Vec<Parameter>,
        timeout: Duration,
    ) -> Result<Vec<Result<(), String>>> {
        let asked = parameters.len();
        let parameters = parameters.into_iter().map(Into::into).collect();
        let request = SetParametersRequest { parameters };
        let results = self.services.call(&self.set, "set_parameters", request, timeout)?.results;
        if results.len() != asked {
            return Err(self.invalid(format!("{} answers for {asked} parameters", results.len())));
        }
        Ok(results.into_iter().map(outcome).collect())
    }

    /// Sets all of these parameters or none; says why not.
    ///
    /// # Errors
    ///
    /// Those of [`list`](Self::list).
    pub fn set_atomically(
        &self,
        parameters: Vec<Parameter>,
        timeout: Duration,
    ) -> Result<Result<(), String>> {
        let parameters = parameters.into_iter().map(Into::into).collect();
        let request = SetParametersAtomicallyRequest { parameters };
        let slot = &self.set_atomically;
        Ok(outcome(self.services.call(slot, "set_parameters_atomically", request, timeout)?.result))
    }

    /// The answers, if there is one for each name.
    fn all<T>(
        &self,
        names: &[&str],
        answers: impl ExactSizeIterator<Item = Result<T, UnknownType>>,
    ) -> Result<Vec<T>> {
        if answers.len() != names.len() {
            let which =
                if names.len() == 1 { "it has no parameter" } else { "it does not have all of" };
            return Err(self.invalid(format!("{which} {}", names.join(", "))));
        }
        answers.collect::<Result<_, _>>().map_err(|error| self.invalid(error.to_string()))
    }

    fn invalid(&self, why: String) -> Error {
        Error::new(ErrorKind::Invalid, format!("parameters of {}: {why}", self.node))
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn outcome(result: SetParametersResult) -> Result<(), String> {
    if result.successful { Ok(()) } else { Err(result.reason) }
}
