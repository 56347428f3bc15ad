import { useState } from 'react';

/** A form that runs `work` with its fields and the button's value, and shows why that failed. */
export function Form({ work, children }) {
  const [problem, setProblem] = useState('');
  async function submit(event) {
    event.preventDefault();
    const form = event.target;
    const fields = Object.fromEntries(new FormData(form));
    try {
      setProblem('');
      await work(fields, event.nativeEvent.submitter?.value);
      form.reset();
    } catch (error) {
      setProblem(error.message);
    }
  }
  return (
    <form onSubmit={submit}>
      {children}
      {problem && <p role="alert">{problem}</p>}
    </form>
  );
}
