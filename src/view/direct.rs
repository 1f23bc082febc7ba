//! The merged view: every server's tools and prompts as `server__item`, resources by URI.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    RequestOutcome, Views, alias, answer,
    app_pages::AppPageRead,
    completion_reference::{self, CompletionReference},
    merge::MergedList,
    missing, own_profile, shown,
};
use crate::{
    call::{CallContinuation, CallError},
    config::defaults,
    era,
    pool::ServerSlot,
    protocol::{
        Message,
        client_meta::TASKS,
        jsonrpc::MessagePart,
        list_page::ListKind,
        payloads::{self, method},
    },
    server_name::{self, QUALIFIER},
    session::Session,
    similar_names::nearest,
};

/// The instructions for clients. Clients cut instructions at 2 KB.
pub(super) const INSTRUCTIONS: &str =
    "Tools and prompts of several MCP servers, each called SERVER__NAME.";

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

impl Views {
    /// Returns the capabilities of all servers together, with the extensions that they declare. If
    /// two servers declare the same extension, the first one counts. The view has no tasks.
    pub(super) fn direct_capabilities(&self) -> Value {
        let mut capabilities = capabilities();
        let mut extensions = Map::new();
        for server in self.pool.slots().keys() {
            let profile = self.catalog.profile(server);
            let declared = profile.as_ref().and_then(|profile| profile.result.get("capabilities"));
            let declared = declared.and_then(|all| all.get("extensions")?.as_object());
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

    pub(super) async fn direct(
        &self,
        session: &Session,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        let asked = request.method().unwrap_or_default();
        if let Some(list) = ListKind::of_method(asked) {
            return self.merged(session, request, list).await;
        }
        match asked {
            method::INITIALIZE => {
                let profile =
                    own_profile(session, request, self.direct_capabilities(), INSTRUCTIONS);
                Ok(answer(request, &profile))
            }
            method::TOOLS_CALL => self.call(session, request, ListKind::Tools).await,
            method::PROMPTS_GET => self.call(session, request, ListKind::Prompts).await,
            method::RESOURCES_READ => {
                // Boxed, here and below, to keep the future of a tool call small.
                let (slot, request, reading) = Box::pin(self.resource(session, request)).await?;
                let reading = reading.map(|reading| Box::new(reading) as Box<dyn CallContinuation>);
                self.exchange_with(slot, session, request, self.limits(), reading).await
            }
            method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => {
                let (slot, request, _) = Box::pin(self.resource(session, request)).await?;
                self.watch(session, &slot, &request).await
            }
            method::COMPLETE => Box::pin(self.complete(session, request)).await,
            method::LOGGING_SET_LEVEL => self.set_level(session, request).await,
            other => Err(CallError::UnknownMethod {
                method: shown(other),
                hint: "Only tools, prompts and resources are merged: use `/servers/NAME` for the rest.",
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
        let found = self.place_of_resource(&uri, self.lister(session)).await;
        let (slot, own) = found.ok_or_else(|| CallError::UnknownResource { uri: shown(&uri) })?;
        if own == uri {
            return Ok((slot, request.clone(), None));
        }
        let reading = AppPageRead::new(slot.name());
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
        self.exchange(slot, session, renamed).await
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
        match reference {
            CompletionReference::Prompt(qualified) => {
                let (slot, prompt) = self.item(session, ListKind::Prompts, &qualified).await?;
                let renamed = completion_reference::renamed(
                    text.unwrap_or_default(),
                    &CompletionReference::Prompt(prompt),
                );
                self.exchange(slot, session, request.with(MessagePart::Reference, &renamed)).await
            }
            CompletionReference::Resource(uri) => {
                let (owner, limits) = (self.lister(session), self.limits());
                if let Some((slot, own)) = self.place_of_page(&uri, owner).await {
                    let renamed = completion_reference::renamed(
                        text.unwrap_or_default(),
                        &CompletionReference::Resource(own),
                    );
                    let request = request.with(MessagePart::Reference, &renamed);
                    return self.exchange(slot, session, request).await;
                }
                let found = self.catalog.server_of_template(&uri, owner, limits).await;
                let slot = found.and_then(|server| self.pool.slot(server.as_str()));
                let slot = slot.ok_or_else(|| CallError::UnknownResource { uri: shown(&uri) })?;
                self.exchange(slot, session, request.clone()).await
            }
        }
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
                ListKind::Tools => Box::pin(self.slot_of_page_calling(session, qualified)).await,
                _ => None,
            };
            let slot = slot.ok_or_else(|| self.unqualified(qualified.to_owned()))?;
            return Ok((slot, qualified.to_owned()));
        };
        let Some(slot) = self.pool.slot(server.as_str()) else {
            return Err(self.unknown_server(server.as_str()));
        };
        let item = match alias::may_be_alias(item) {
            true => self.meant(session, &slot, list, item).await,
            false => item.to_owned(),
        };
        Ok((slot, item))
    }

    /// Returns the item of `slot` with this name, or with this alias; else `item`, which the server
    /// then rejects itself.
    async fn meant(
        &self,
        session: &Session,
        slot: &Arc<ServerSlot>,
        list: ListKind,
        item: &str,
    ) -> String {
        let listing = self.catalog.listing(slot, list, self.lister(session), self.limits()).await;
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
        CallError::Unqualified { name: shown(&name), similar }
    }

    /// Answers a list request with the items of all servers, on one page unless they are very many.
    async fn merged(
        &self,
        session: &Session,
        request: &Message,
        list: ListKind,
    ) -> Result<RequestOutcome, CallError> {
        let cursor = request.string(MessagePart::Cursor);
        let listings = self.catalog.all(list, self.lister(session), self.limits()).await;
        let items = listings.iter().flat_map(|(_, listing)| listing.iter());
        let bytes = items.map(|item| item.json().len()).sum();
        let (asked, is_modern) = (cursor.clone(), session.is_modern());
        let shows_pages = session.client().shows_pages();
        let merge = move || {
            let mut merged = MergedList::new(list, &listings, shows_pages);
            let page = merged.page(asked.as_deref(), defaults::LIST_PAGE_ITEMS).map(|page| {
                if !is_modern {
                    return era::legacy_list(page, list);
                }
                let page = era::modern_list(page, list);
                era::decorate(&page, list.method(), Some(payloads::implementation_text()))
            });
            (page, std::mem::take(&mut merged.collisions))
        };
        let merged = self.desk.compute(session.holder(), bytes, move |_| merge()).await;
        let (page, collisions) = merged.map_err(|source| CallError::Overloaded { source })?;
        self.catalog.collided(collisions);
        let page = page.ok_or_else(|| CallError::UnknownCursor {
            cursor: shown(cursor.as_deref().unwrap_or_default()),
        })?;
        Ok(RequestOutcome::Answer(Message::response(
            request.part(MessagePart::Id).unwrap_or("null"),
            &page,
        )))
    }
}
