import { render } from 'preact';
import { App, startConsole } from './app.js';

startConsole();
render(<App />, document.getElementById('app')!);
