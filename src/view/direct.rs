//! The merged view: every server's tools and prompts as `server__item`, resources by URI.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    alias,
    completion_reference::{self, CompletionReference},
    merge::MergedList,
    resource_locator::{AppPageRead, ResourceLocator},
    subscribe,
};
use crate::{
    call::{CallContinuation, CallError},
    catalog::Catalog,
    config::defaults,
    era,
    forward::{Forwarder, RequestOutcome, discovery_result, initialize_result, missing, quoted},
    pool::ServerSlot,
    protocol::{
        Message,
        client_meta::TASKS,
        jsonrpc::MessagePart,
        list_page::ListKind,
        parameter_headers::HeaderParameter,
        payloads::{self, method},
    },
    server_name::{self, QUALIFIER},
    session::Session,
    similar_names::nearest,
};

/// The instructions for clients. Clients cut instructions at 2 KB.
const INSTRUCTIONS: &str = "Tools and prompts of several MCP servers, each called SERVER__NAME.";

/// Returns the capabilities of all servers together.
pub(super) fn capabilities() -> Value {
    json!({
        "completions": {},
        "logging": {},
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
    })
}

/// The view of all servers, merged.
#[derive(Debug)]
pub(super) struct DirectView {
    pub(super) forwarder: Arc<Forwarder>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) resources: ResourceLocator,
}

impl DirectView {
    /// Returns the discovery result, for modern clients.
    pub(super) fn discovery(&self) -> Value {
        discovery_result(self.capabilities(), INSTRUCTIONS)
    }

    /// Returns the arguments of a call of `tool` that its headers must repeat, if the tool's schema
    /// was read.
    pub(super) fn header_parameters(&self, tool: &str) -> Vec<HeaderParameter> {
        let slot = server_name::split_qualified(tool)
            .and_then(|(server, _)| self.forwarder.pool().slot(server));
        let Some(slot) = slot else { return Vec::new() };
        slot.hints().header_parameters(|known| alias::exposed(slot.name(), known) == tool)
    }

    /// Returns the capabilities of all servers together, with the extensions that they declare. If
    /// two servers declare the same extension, the first one counts. The view has no tasks.
    fn capabilities(&self) -> Value {
        let mut capabilities = capabilities();
        let mut extensions = Map::new();
        for server in self.forwarder.pool().slots().keys() {
            let profile = self.catalog.profile(server);
            let declared = profile.as_ref().and_then(|profile| {
                profile.result.get("capabilities")?.get("extensions")?.as_object()
            });
            for (name, settings) in
                declared.into_iter().flatten().filter(|(name, _)| *name != TASKS)
            {
                extensions.entry(name).or_insert_with(|| settings.clone());
            }
        }
        if !extensions.is_empty() {
            capabilities["extensions"] = extensions.into();
        }
        capabilities
    }

    /// Answers a request, or forwards it. Cancel safe: nothing was sent.
    ///
    /// # Errors
    ///
    /// [`CallError`] if no server can serve it.
    pub(super) async fn handle(
        &self,
        session: &Session,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        let method = request.method().unwrap_or_default();
        if let Some(list) = ListKind::of_method(method) {
            return self.merged(session, request, list).await;
        }
        match method {
            method::INITIALIZE => {
                let capabilities = self.capabilities();
                let result = initialize_result(session, request, capabilities, INSTRUCTIONS);
                Ok(RequestOutcome::answer(request, &result))
            }
            method::TOOLS_CALL => self.call(session, request, ListKind::Tools).await,
            method::PROMPTS_GET => self.call(session, request, ListKind::Prompts).await,
            method::RESOURCES_READ => {
                // Boxed, here and below, to keep the future of a tool call small.
                let (slot, request, reading) = Box::pin(self.resource(session, request)).await?;
                let reading = reading.map(|reading| Box::new(reading) as Box<dyn CallContinuation>);
                self.forwarder
                    .forward_with(slot, session, request, self.forwarder.limits(), reading)
                    .await
            }
            method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => {
                let (slot, request, _) = Box::pin(self.resource(session, request)).await?;
                subscribe::watch(&self.forwarder, session, &slot, &request).await
            }
            method::COMPLETE => Box::pin(self.complete(session, request)).await,
            method::LOGGING_SET_LEVEL => {
                subscribe::set_level(&self.forwarder, session, request).await
            }
            other => Err(CallError::UnknownMethod {
                method: quoted(other),
                hint: "This path serves only tools, prompts and resources: use `/servers/NAME` for the rest.",
            }),
        }
    }

    /// Returns the server of a resource, the request with the server's own URI, and the rewriting
    /// of the result if it is a page.
    async fn resource(
        &self,
        session: &Session,
        request: &Message,
    ) -> Result<(Arc<ServerSlot>, Message, Option<AppPageRead>), CallError> {
        let uri = request.string(MessagePart::Uri).ok_or_else(|| missing(request, "uri"))?;
        let location = self.resources.locate(&uri, self.forwarder.list_owner(session)).await;
        let (slot, own) = location.ok_or_else(|| CallError::UnknownResource(quoted(&uri)))?;
        if own == uri {
            return Ok((slot, request.clone(), None));
        }
        let reading = AppPageRead { server: slot.name().clone() };
        Ok((slot, request.with(MessagePart::Uri, &Value::from(own).to_string()), Some(reading)))
    }

    /// Forwards a request for an item of `list` to its server.
    async fn call(
        &self,
        session: &Session,
        request: &Message,
        list: ListKind,
    ) -> Result<RequestOutcome, CallError> {
        let qualified =
            request.string(MessagePart::Name).ok_or_else(|| missing(request, "name"))?;
        let (slot, item) = self.item(session, list, &qualified).await?;
        let item = serde_json::Value::from(item).to_string();
        // The client could not find a task again here.
        let renamed = era::without_tasks(request.with(MessagePart::Name, &item));
        self.forwarder.forward(slot, session, renamed).await
    }

    /// Forwards a completion request to the server of its subject.
    async fn complete(
        &self,
        session: &Session,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        let text = request.part(MessagePart::Reference);
        let reference =
            CompletionReference::read(text).map_err(|parameter| missing(request, parameter))?;
        let (slot, reference) = match reference {
            CompletionReference::Prompt(qualified) => {
                let (slot, prompt) = self.item(session, ListKind::Prompts, &qualified).await?;
                (slot, CompletionReference::Prompt(prompt))
            }
            CompletionReference::Resource(uri) => {
                let (owner, limits) = (self.forwarder.list_owner(session), self.forwarder.limits());
                let Some((slot, own)) = self.resources.locate_page(&uri, owner).await else {
                    let server = self.catalog.server_of_template(&uri, owner, limits).await;
                    let slot =
                        server.and_then(|server| self.forwarder.pool().slot(server.as_str()));
                    let slot = slot.ok_or_else(|| CallError::UnknownResource(quoted(&uri)))?;
                    return self.forwarder.forward(slot, session, request.clone()).await;
                };
                (slot, CompletionReference::Resource(own))
            }
        };
        let renamed = completion_reference::renamed(text.unwrap_or_default(), &reference);
        self.forwarder.forward(slot, session, request.with(MessagePart::Reference, &renamed)).await
    }

    /// Returns the server of the item of `list` with the name `qualified`, and the item's name
    /// there.
    async fn item(
        &self,
        session: &Session,
        list: ListKind,
        qualified: &str,
    ) -> Result<(Arc<ServerSlot>, String), CallError> {
        let Some((server, item)) = server_name::split_qualified(qualified) else {
            // A page calls the tools of its server by their own names.
            let slot = match list {
                ListKind::Tools => {
                    Box::pin(self.resources.slot_of_page_calling(session, qualified)).await
                }
                _ => None,
            };
            let slot = slot.ok_or_else(|| self.unqualified(qualified.to_owned()))?;
            return Ok((slot, qualified.to_owned()));
        };
        let slot = self.forwarder.declared_slot(server)?;
        let item = match alias::may_be_alias(item) {
            true => self.item_of_alias(session, &slot, list, item).await,
            false => item.to_owned(),
        };
        Ok((slot, item))
    }

    /// Returns the item of `slot` with this name, or with this alias; else `item`, which the server
    /// then rejects itself.
    async fn item_of_alias(
        &self,
        session: &Session,
        slot: &Arc<ServerSlot>,
        list: ListKind,
        item: &str,
    ) -> String {
        let listing = self
            .catalog
            .listing(slot, list, self.forwarder.list_owner(session), self.forwarder.limits())
            .await;
        let items = listing.as_deref().map(Vec::as_slice).unwrap_or_default();
        let name = slot.name().qualify(item);
        let is_alias = |key: &str| alias::exposed(slot.name(), key) == name;
        let plain = items.iter().find(|known| known.key == item);
        let found = plain.or_else(|| items.iter().find(|known| is_alias(&known.key)));
        found.map_or(item, |known| &known.key).to_owned()
    }

    fn unqualified(&self, name: String) -> CallError {
        let known = self.catalog.known().into_iter();
        let mut known: Vec<_> =
            known.map(|(server, item)| alias::exposed(&server, &item)).collect();
        known.sort();
        let suffix = format!("{QUALIFIER}{name}");
        let mut similar: Vec<String> =
            known.iter().filter(|known| known.ends_with(&suffix)).take(3).cloned().collect();
        if similar.is_empty() {
            similar = nearest(&name, known.into_iter());
        }
        CallError::Unqualified { name: quoted(&name), similar }
    }

    /// Answers a list request with the items of all servers, on one page unless they are very many.
    async fn merged(
        &self,
        session: &Session,
        request: &Message,
        list: ListKind,
    ) -> Result<RequestOutcome, CallError> {
        let cursor = request.string(MessagePart::Cursor);
        let listings = self
            .catalog
            .all(list, self.forwarder.list_owner(session), self.forwarder.limits())
            .await;
        let items = listings.iter().flat_map(|(_, listing)| listing.iter());
        let bytes = items.map(|item| item.json().len()).sum();
        let (page_cursor, is_modern) = (cursor.clone(), session.is_modern());
        let shows_pages = session.client().shows_pages();
        let merge = move || {
            let mut merged = MergedList::new(list, &listings, shows_pages);
            let page = merged.page(page_cursor.as_deref(), defaults::LIST_PAGE_ITEMS).map(|page| {
                if !is_modern {
                    return era::legacy_list(page, list);
                }
                let page = era::modern_list(page, list);
                era::decorate(&page, list.method(), Some(payloads::implementation_text()))
            });
            (page, std::mem::take(&mut merged.collisions))
        };
        let merged = self.forwarder.compute(session.holder(), bytes, move |_| merge()).await;
        let (page, collisions) = merged.map_err(CallError::Overloaded)?;
        self.catalog.collided(collisions);
        let page = page.ok_or_else(|| {
            CallError::UnknownCursor(quoted(cursor.as_deref().unwrap_or_default()))
        })?;
        Ok(RequestOutcome::answer_text(request, &page))
    }
}
