import { useState } from 'react';
import { useFollow } from '@bsvc/client/react';
import { api } from './api.js';
import { Form } from './form.jsx';

/** The lists of the signed-in user and those shared with them: rules of bsvc.yaml say which these are. */
export function Lists({ user }) {
  const [chosen, choose] = useState(null);
  const { data: lists, error } = useFollow(api, 'lists', { sort: 'createdAt' });
  if (error) return <p role="alert">{error.message}</p>;
  const list = lists?.find(({ _id }) => _id === chosen) ?? lists?.[0];
  return (
    <div className="columns">
      <nav>
        <ul>
          {lists?.map(({ _id, title, owner }) => (
            <li key={_id}>
              <button className="link" aria-current={_id === list?._id} onClick={() => choose(_id)}>
                {title}
                {owner !== user._id && <small> shared with you</small>}
              </button>
            </li>
          ))}
        </ul>
        <Form work={async ({ title }) => choose((await api.collection('lists').insert({ title }))._id)}>
          <input name="title" aria-label="Title of the new list" placeholder="New list" required />
          <button>Create</button>
        </Form>
      </nav>
      {list ? <List key={list._id} list={list} isOwner={list.owner === user._id} /> : lists && <p>Create a list.</p>}
    </div>
  );
}

function List({ list, isOwner }) {
  const [problem, setProblem] = useState('');
  const items = api.collection('items');
  const attempt = (work) =>
    work.then(
      () => setProblem(''),
      (failure) => setProblem(failure.message),
    );
  const { data, error } = useFollow(api, 'items', { filter: { list: list._id }, sort: 'createdAt' });
  async function share({ username }) {
    const { _id } = await api.auth.publicProfile(username);
    await api.collection('lists').update(list._id, { $addToSet: { members: _id } });
  }
  return (
    <section>
      <h2>{list.title}</h2>
      {(error || problem) && <p role="alert">{error?.message ?? problem}</p>}
      <ul className="items">
        {data?.map(({ _id, text, done }) => (
          <li key={_id}>
            <label>
              <input type="checkbox" checked={done} onChange={() => attempt(items.update(_id, { done: !done }))} />
              <span>{text}</span>
            </label>
            <button aria-label={`Remove ${text}`} title="Remove" onClick={() => attempt(items.remove(_id))}>
              ×
            </button>
          </li>
        ))}
      </ul>
      <Form work={({ text }) => items.insert({ list: list._id, text })}>
        <input name="text" aria-label="New item" placeholder="New item" required />
        <button>Add</button>
      </Form>
      {isOwner && (
        <Form work={share}>
          <input name="username" aria-label="User name to share with" placeholder="User name" required />
          <button>Share</button>
        </Form>
      )}
      {list.members?.length > 0 && (
        <p>
          <small>
            Shared with {list.members.length} {list.members.length === 1 ? 'user' : 'users'}
          </small>
        </p>
      )}
    </section>
  );
}
