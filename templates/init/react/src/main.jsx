import { createRoot } from 'react-dom/client';
import { useUser } from '@bsvc/client/react';
import { Account } from './account.jsx';
import { api } from './api.js';
import { Lists } from './lists.jsx';

function App() {
  const user = useUser(api);
  return (
    <>
      <header>
        <h1>Shared lists</h1>
        {user && (
          <p>
            {user.username} <button onClick={() => api.auth.signOut()}>Sign out</button>
          </p>
        )}
      </header>
      <main>{user ? <Lists user={user} /> : <Account />}</main>
    </>
  );
}

createRoot(document.querySelector('#app')).render(<App />);
