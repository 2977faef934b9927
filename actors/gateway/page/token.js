/** The access token: asked for only where the gateway wants one, kept for this tab, never part of a URL. */

import { byId } from "./display.js";

const KEY = "greenroom.token";

/** A server picks this one; the token beside it is not a protocol and is never picked. */
const PROTOCOL = "greenroom";

/** The subprotocols to offer in the handshake: none without a token. */
export function tokenProtocols() {
  const token = sessionStorage.getItem(KEY);
  return token === null ? [] : [PROTOCOL, `${KEY}.${base64url(token)}`];
}

/** The headers that bring the token in a plain request. */
export function tokenHeaders() {
  const token = sessionStorage.getItem(KEY);
  return token === null ? {} : { Authorization: `Bearer ${token}` };
}

function base64url(text) {
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** Show the entry while the connection is refused; connect again with what is entered. */
export function askForTokens(connection) {
  const form = byId("token");
  const entry = byId("token-entry");
  connection.addEventListener("state", () => {
    const refused = connection.state === "refused";
    if (refused && form.hidden) entry.value = "";
    if (connection.state !== "connecting") form.hidden = !refused;
    if (refused) entry.focus();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(KEY, entry.value.trim());
    entry.value = "";
    connection.connect();
  });
}
