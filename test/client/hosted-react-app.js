// An application made with the React package of the hosted service, for hosted-react.test.ts to work in. What the hooks
// return stands in `globalThis.shown`, anew with each rendering.
import * as react from '@urbackend/react';
import { createElement as h } from 'react';
import { createRoot } from 'react-dom/client';

const { GuestRoute, ProtectedRoute, UrAuth, UrProvider, UrUserButton } = react;
const { key, url } = globalThis.settings;
const routes = (globalThis.routes = { refused: 0, left: 0 });

/** What the package has of its own. */
globalThis.exported = Object.keys(react);

function Shown() {
  globalThis.shown = {
    useAuth: react.useAuth(),
    useUser: react.useUser(),
    useDb: react.useDb(),
    useStorage: react.useStorage(),
    useUrContext: react.useUrContext(),
  };
  return null;
}

function Pages() {
  return [
    h(Shown, { key: 'shown' }),
    h(ProtectedRoute, {
      key: 'protected',
      fallback: h('p', { id: 'closed' }, 'Sign in first'),
      onRedirect: () => routes.refused++,
      children: h('p', { id: 'inside' }, 'Only for users'),
    }),
    h(GuestRoute, {
      key: 'guest',
      onRedirect: () => routes.left++,
      children: h('div', { id: 'guest' }, h(UrAuth)),
    }),
    h(UrUserButton, { key: 'button', position: 'inline' }),
  ];
}

createRoot(document.getElementById('app')).render(h(UrProvider, { apiKey: key, baseUrl: url, children: h(Pages) }));
