import { useState } from 'react';
import { api } from './api.js';
import { Form } from './form.jsx';

/** Signing up and signing in. */
export function Account() {
  const [isNew, setNew] = useState(true);
  const work = ({ username, email, password }) =>
    isNew ? api.auth.signUp({ username, email, password }) : api.auth.signIn({ email, password });
  return (
    <section className="account">
      <Form key={isNew} work={work}>
        <h2>{isNew ? 'Create an account' : 'Sign in'}</h2>
        {isNew && (
          <label>
            User name
            <input
              name="username"
              pattern="[a-z0-9_\-]{2,20}"
              title="2 to 20 of a-z, 0-9, _ and -"
              autoComplete="nickname"
              required
            />
          </label>
        )}
        <label>
          Email
          <input name="email" type="email" autoComplete="username" required />
        </label>
        <label>
          Password
          <input
            name="password"
            type="password"
            minLength={6}
            autoComplete={isNew ? 'new-password' : 'current-password'}
            required
          />
        </label>
        <button>{isNew ? 'Sign up' : 'Sign in'}</button>
      </Form>
      <button className="link" onClick={() => setNew(!isNew)}>
        {isNew ? 'I have an account' : 'I have no account yet'}
      </button>
    </section>
  );
}
